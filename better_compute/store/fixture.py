"""Puts a test database back as it was, append-only tables included. Only the role that owns the tables can."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db import connections, transaction
from psycopg import sql

from better_compute import conf

#: Holds the rows to go back to.
BASELINE: Final = "compute_baseline"

#: The core's tables beside the ledger and the store's identity; a partitioned one stands for its partitions.
CLEARED: Final = (
    "compute_idempotency",
    "compute_seal_keys",
    "compute_work",
    "compute_pauses",
    "compute_queue_history",
    "compute_leases",
    "compute_workers",
    "compute_processes",
    "compute_outbox",
    "compute_audit_events",
)

# Copies what migrations and their signals made: content types, permissions, the clock, ... Reads only, but for
# tables of its own. What has been migrated stays as it is, and so do the ledgers that say so.
_TAKE: Final = f"""
DROP SCHEMA IF EXISTS {BASELINE} CASCADE;
CREATE SCHEMA {BASELINE};
DO $$
DECLARE
  each record;
  filled boolean;
BEGIN
  FOR each IN SELECT relname, relispartition FROM pg_class
      WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
      AND relname NOT IN ('django_migrations', 'compute_migrations')
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', each.relname) INTO filled;
    -- An empty partition is kept too: it tells which ones there were.
    IF filled OR each.relispartition THEN
      EXECUTE format('CREATE TABLE {BASELINE}.%1$I AS TABLE %1$I', each.relname);
    END IF;
  END LOOP;
END $$;
"""  # noqa: S608  (a constant)

# Touches only tables that differ: emptying those costs a few milliseconds, where TRUNCATE of all makes new files
# for every table and index. A table whose file has grown beyond 1 MiB is truncated where no foreign key points at
# it, since deleted rows would stay in the file and mislead the planner of later tests.
# A partition that was made meanwhile, as by a worker's retention, goes: half of its work would be told as missing.
# Locks: ROW EXCLUSIVE, with SHARE ROW EXCLUSIVE where a trigger is in the way and ACCESS EXCLUSIVE where it
# truncates or drops; in the order of names for partitions and triggers, then of foreign keys, referencing tables
# first. lock_timeout makes it fail whole where a table cannot be had.
_RESTORE: Final = """
DO $$
DECLARE
  given name[] := {given};
  baseline oid := to_regnamespace({baseline});
  each record;
  differs boolean;
  changed name[] := '{{}}';
  guarded name[] := '{{}}';
BEGIN
  SET LOCAL lock_timeout = '10s';
  IF given IS NULL THEN
    FOR each IN SELECT c.relname AS name FROM pg_class c
      WHERE c.relispartition AND c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
        AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
        AND NOT EXISTS (SELECT FROM pg_class b WHERE b.relnamespace = baseline AND b.relname = c.relname)
      ORDER BY name
    LOOP
      EXECUTE format('DROP TABLE %I', each.name);
    END LOOP;
  END IF;
  FOR each IN SELECT c.relname AS name, pg_relation_size(c.oid) > 1 << 20 AS grown,
      EXISTS (SELECT FROM pg_class b WHERE b.relnamespace = baseline AND b.relname = c.relname) AS kept
    FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
      AND c.relname NOT IN ('django_migrations', 'compute_migrations')
      AND (given IS NULL OR c.relname = ANY (given) OR EXISTS (SELECT FROM pg_inherits i
        JOIN pg_class parent ON parent.oid = i.inhparent WHERE i.inhrelid = c.oid AND parent.relname = ANY (given)))
  LOOP
    IF each.kept THEN
      EXECUTE format('SELECT EXISTS (TABLE %1$I EXCEPT ALL TABLE %2$I.%1$I)'
        ' OR EXISTS (TABLE %2$I.%1$I EXCEPT ALL TABLE %1$I)', each.name, {baseline}) INTO differs;
    ELSE
      EXECUTE format('SELECT %2$L::boolean OR EXISTS (SELECT FROM %1$I)', each.name, each.grown) INTO differs;
    END IF;
    IF differs THEN
      changed := changed || each.name;
    END IF;
  END LOOP;

  -- A table with pending trigger events cannot be altered, so this comes before the first row goes.
  FOR each IN SELECT DISTINCT c.relname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY (changed) AND NOT t.tgisinternal
    ORDER BY name
  LOOP
    EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', each.name);
    guarded := guarded || each.name;
  END LOOP;

  FOR each IN WITH RECURSIVE depths (relation, depth) AS (
      SELECT oid, 0 FROM pg_class
      WHERE relnamespace = current_schema()::regnamespace AND relname = ANY (changed)
      UNION SELECT f.confrelid, d.depth + 1 FROM depths d JOIN pg_constraint f ON f.conrelid = d.relation
      WHERE f.contype = 'f' AND f.confrelid <> f.conrelid AND d.depth < 32)
    SELECT c.relname AS name, pg_relation_size(c.oid) > 1 << 20 AND NOT EXISTS
        (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.confrelid = c.oid) AS truncates
    FROM depths d JOIN pg_class c ON c.oid = d.relation
    WHERE c.relname = ANY (changed) GROUP BY c.oid, c.relname ORDER BY max(d.depth), name
  LOOP
    IF each.truncates THEN
      EXECUTE format('TRUNCATE %I', each.name);
    ELSE
      EXECUTE format('DELETE FROM %I', each.name);
    END IF;
  END LOOP;

  FOR each IN SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ') AS columns
    FROM pg_class b JOIN pg_class c ON c.relname = b.relname JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE b.relnamespace = baseline AND c.relnamespace = current_schema()::regnamespace
      AND c.relname = ANY (changed) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    GROUP BY c.relname
  LOOP
    EXECUTE format('INSERT INTO %1$I (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM %3$I.%1$I',
      each.name, each.columns, {baseline});
  END LOOP;

  SET CONSTRAINTS ALL IMMEDIATE;
  FOR each IN SELECT name FROM unnest(guarded) AS name
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', each.name);
  END LOOP;
END $$
"""

_SET_CLOCK_RIGHT: Final = """
UPDATE compute_clock SET clock_offset = interval '0', anchored_at = NULL
WHERE clock_offset <> interval '0' OR anchored_at IS NOT NULL
"""


def take_baseline(using: str | None = None) -> None:
    """Keep the rows that the schema's tables hold now, beside the ledgers, in a schema of their own."""
    alias = using or conf.current().owner_database
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(_TAKE)


def restore_baseline(using: str | None = None) -> None:
    """Put every table of the schema, but the ledgers, back to the rows kept, or to none, in one transaction.

    Partitions that were not there when the rows were kept are dropped.
    """
    alias = using or conf.current().owner_database
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(_restore(None))


def clear(using: str | None = None) -> None:
    """Empty the core's tables in one transaction."""
    alias = using or conf.current().owner_database
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(_restore(CLEARED))
        cursor.execute(_SET_CLOCK_RIGHT)


def _restore(tables: Iterable[str] | None) -> sql.Composed:
    names = sql.SQL("NULL") if tables is None else sql.Literal(list(tables))
    return sql.SQL(_RESTORE).format(given=names, baseline=sql.Literal(BASELINE))
