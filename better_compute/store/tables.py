"""Dropping the tables of a module that is removed."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

EXISTING = "SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(quote_ident(name)) IS NOT NULL ORDER BY name"


def existing(connection: BaseDatabaseWrapper, tables: Sequence[str]) -> list[str]:
    """Those of ``tables`` that are there, by name."""
    with connection.cursor() as cursor:
        cursor.execute(EXISTING, [list(tables)])
        return [name for (name,) in cursor.fetchall()]


def drop(connection: BaseDatabaseWrapper, tables: Sequence[str]) -> None:
    """Drop ``tables`` in one statement, in the transaction that is open.

    Together they may reference one another; a reference from any other table makes PostgreSQL refuse, so
    nothing of another module goes with them.
    """
    present = existing(connection, tables)
    if present:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE " + ", ".join(connection.ops.quote_name(name) for name in present))
