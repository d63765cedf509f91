"""Which tables of a module are there, and dropping those of one that is removed."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

EXISTING = "SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(quote_ident(name)) IS NOT NULL ORDER BY name"

#: Django's template for dropping a table without what else stands on it: PostgreSQL refuses then.
DROP_ALONE = "DROP TABLE %(table)s"

#: Of pairs of a table and a column or none, those that the search_path finds; reads the catalog only, no lock.
EXISTING_PARTS = """
SELECT concat_ws('.', part.name, part.attribute) AS title
  FROM unnest(%s::text[], %s::text[]) AS part (name, attribute)
 WHERE to_regclass(quote_ident(part.name)) IS NOT NULL
   AND (part.attribute IS NULL OR EXISTS (
         SELECT FROM pg_attribute AS held
          WHERE held.attrelid = to_regclass(quote_ident(part.name)) AND held.attname = part.attribute
            AND NOT held.attisdropped))
 ORDER BY title
"""


def existing(connection: BaseDatabaseWrapper, tables: Sequence[str]) -> list[str]:
    """Those of ``tables`` that are there, by name."""
    with connection.cursor() as cursor:
        cursor.execute(EXISTING, [list(tables)])
        return [name for (name,) in cursor.fetchall()]


def existing_parts(connection: BaseDatabaseWrapper, parts: Sequence[tuple[str, str | None]]) -> list[str]:
    """Those of ``parts``, each a table and a column of it or None for itself, that are there: ``table[.column]``."""
    with connection.cursor() as cursor:
        cursor.execute(EXISTING_PARTS, [[table for table, _ in parts], [column for _, column in parts]])
        return [title for (title,) in cursor.fetchall()]


def drop(connection: BaseDatabaseWrapper, tables: Sequence[str]) -> None:
    """Drop ``tables`` in one statement, in the transaction that is open.

    Together they may reference one another; a reference from any other table makes PostgreSQL refuse, so
    nothing of another module goes with them.
    """
    present = existing(connection, tables)
    if present:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE " + ", ".join(connection.ops.quote_name(name) for name in present))
