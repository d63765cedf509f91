"""The migration ledger (schema/0001_ledger.sql): append rows, read where each migration stands.

Every statement runs on the migrator's connection, which holds the migration lock; readers lock nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.db.backends.base.base import BaseDatabaseWrapper

Action = Literal["started", "applied", "faked", "adopted", "reverted", "removed", "rehashed"]

EXISTS = "SELECT to_regclass('compute_migrations') IS NOT NULL"

INSERT = """
INSERT INTO compute_migrations (owner, name, action, checksum, reason, version, duration_ms)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""

# One round trip for both rows of a migration; either is there with the other only.
INSERT_BOTH = """
WITH django AS (INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, statement_timestamp()))
INSERT INTO compute_migrations (owner, name, action, checksum, reason, version, duration_ms)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""

#: What an operator types to put a lost row back; labels and names of migrations are words of Python's.
DJANGO_ROW = "INSERT INTO django_migrations (app, name, applied) VALUES ('{app}', '{name}', now())"

STANDING = """
SELECT DISTINCT ON (name) owner, name, action, checksum, version
FROM compute_migrations
ORDER BY name, seq DESC
"""

#: Actions after which a migration is in the schema.
IN_SCHEMA = frozenset({"applied", "faked", "adopted", "rehashed"})


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A row to append. ``checksum`` is hex SHA-256; ``duration_ms`` in milliseconds."""

    owner: str
    name: str
    action: Action
    checksum: str
    version: str
    reason: str | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """The last row of a name."""

    owner: str
    name: str
    action: Action
    checksum: str
    version: str

    @property
    def in_schema(self) -> bool:
        """Whether the schema holds what the migration makes."""
        return self.action in IN_SCHEMA


def exists(connection: BaseDatabaseWrapper) -> bool:
    """Whether the ledger is there: it is made by core/0001 and goes with it."""
    with connection.cursor() as cursor:
        cursor.execute(EXISTS)
        return bool(cursor.fetchone()[0])


def append(connection: BaseDatabaseWrapper, row: LedgerRow) -> None:
    """Append ``row`` in the transaction that is open."""
    with connection.cursor() as cursor:
        cursor.execute(INSERT, _values(row))


def append_and_record(connection: BaseDatabaseWrapper, row: LedgerRow, app: str, name: str) -> None:
    """Append ``row`` and write Django's row for the migration ``name`` of ``app``; both or neither."""
    with connection.cursor() as cursor:
        cursor.execute(INSERT_BOTH, [app, name, *_values(row)])


def django_row(app: str, name: str) -> str:
    """The statement that puts Django's row for the migration ``name`` of ``app`` back by hand."""
    return DJANGO_ROW.format(app=app, name=name)


def _values(row: LedgerRow) -> list[Any]:
    return [row.owner, row.name, row.action, row.checksum, row.reason, row.version, row.duration_ms]


def standings(connection: BaseDatabaseWrapper) -> dict[str, Standing]:
    """Where every migration that the ledger knows stands, by ledger name; empty without a ledger."""
    if not exists(connection):
        return {}
    with connection.cursor() as cursor:
        cursor.execute(STANDING)
        return {
            name: Standing(owner, name, action, checksum, version)
            for owner, name, action, checksum, version in cursor.fetchall()
        }
