"""Indexes that a concurrent build left behind."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

INVALID = """
SELECT indexed.relname::text, index.relname::text
FROM pg_index AS entry
JOIN pg_class AS index ON index.oid = entry.indexrelid
JOIN pg_class AS indexed ON indexed.oid = entry.indrelid
WHERE NOT entry.indisvalid AND index.relnamespace = current_schema()::regnamespace
  -- One that is being built now is not left behind.
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index AS building WHERE building.index_relid = index.oid)
ORDER BY 1, 2
"""


def invalid(connection: BaseDatabaseWrapper) -> list[tuple[str, str]]:
    """Table and name of every index that no query uses, because its concurrent build did not end."""
    with connection.cursor() as cursor:
        cursor.execute(INVALID)
        return [(table, index) for table, index in cursor.fetchall()]


def drop_concurrently(connection: BaseDatabaseWrapper, index: str) -> None:
    """Drop ``index`` if it is there. Takes SHARE UPDATE EXCLUSIVE, so writers go on; needs no transaction open."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(index)}")
