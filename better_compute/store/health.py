"""What doctor and the probes read of the store. Every statement is bounded, locks nothing and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections

from better_compute.store import overview, presence, transaction
from better_compute.store.overview import CAP
from better_compute.store.work import STUCK_ATTEMPTS

#: The longest any statement of a check may run, in milliseconds.
STATEMENT_TIMEOUT_MS: Final = 5_000

# Both hold until the savepoint or transaction is rolled back, which is how a check always ends.
READ_ONLY = "SET TRANSACTION READ ONLY"
TIMEOUT = f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}"

# Only rows that failed stand in the partial index on last_error_at.
STUCK = """
SELECT kind, count(*) AS n, (array_agg(key ORDER BY attempts DESC, key))[1:3] AS keys, max(attempts) AS attempts
FROM (
  SELECT kind, key, attempts FROM compute_work WHERE last_error_at IS NOT NULL
  ORDER BY last_error_at DESC LIMIT %(cap)s
) failed
WHERE attempts >= %(attempts)s
GROUP BY kind ORDER BY kind
"""

UNHELD = """
SELECT wanted.name
FROM unnest(%s::text[]) WITH ORDINALITY AS wanted (name, position)
WHERE NOT EXISTS (
  SELECT FROM compute_leases lease JOIN compute_workers holder ON holder.id = lease.holder
  WHERE lease.name = wanted.name AND holder.expires_at > compute_now())
ORDER BY wanted.position
"""

# A note may be another release's: what says no time is left out.
LONG_RUNNING = """
SELECT noted ->> 'kind', count(*), (array_agg(ran.key #>> '{}' ORDER BY noted ->> 'since', ran.key))[1:3],
       max(clock.time - (noted ->> 'since')::timestamptz), (array_agg(member.host || ':' || member.pid))[1]
FROM compute_workers member
CROSS JOIN (SELECT compute_now() AS time) AS clock
CROSS JOIN LATERAL jsonb_path_query(
  member.inflight,
  'lax $[*] ? (@.kind.type() == "string" && @.since like_regex "^[0-9]{4}-[0-9]{2}-[0-9]{2}T")') AS noted
CROSS JOIN LATERAL jsonb_path_query(noted, 'lax $.keys[*]') AS ran (key)
WHERE member.expires_at > clock.time AND (noted ->> 'since')::timestamptz < clock.time - %s::interval
GROUP BY noted ->> 'kind' ORDER BY 1
"""

# What this role may see: its own sessions, those of roles it is a member of, and every prepared transaction.
OLD_SNAPSHOTS = """
SELECT 'session ' || pid || ' (' || COALESCE(NULLIF(application_name, ''), usename) || ', ' || state || ')',
       clock_timestamp() - xact_start
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
  AND xact_start < clock_timestamp() - %(age)s::interval
UNION ALL
SELECT 'prepared transaction ' || quote_literal(gid), clock_timestamp() - prepared
FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - %(age)s::interval
ORDER BY 2 DESC
"""

LIVE_ROLES = "SELECT DISTINCT role FROM compute_workers WHERE expires_at > compute_now()"

ISOLATION = "SELECT current_setting('default_transaction_isolation')"

STANDBY = "SELECT pg_is_in_recovery()"

ANSWER = "SELECT 1"

CLOCK = "SELECT statement_timestamp(), clock_offset FROM compute_clock"

LIVE_PROCESSES = """
SELECT role, host, pid, fingerprint, ARRAY(SELECT jsonb_array_elements_text(modules)) FROM compute_processes
WHERE seen_at > compute_now() - %s::interval ORDER BY host, pid LIMIT 1000
"""

# A worker states its connections as process and as member of each role: the largest figure is the process's.
CONNECTIONS = """
WITH stated AS (
  SELECT host, pid, connections FROM compute_processes WHERE seen_at > compute_now() - %s::interval
  UNION ALL
  SELECT host, pid, connections FROM compute_workers WHERE expires_at > compute_now()
)
SELECT COALESCE(sum(most), 0)::bigint, count(*),
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
         - COALESCE(current_setting('reserved_connections', true), '0')::bigint
FROM (SELECT max(connections) AS most FROM stated GROUP BY host, pid) process
"""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Keys of a kind that failed :data:`STUCK_ATTEMPTS` times or more; ``keys`` names the worst three."""

    kind: str
    count: int
    keys: list[str]
    attempts: int


@dataclass(frozen=True, slots=True)
class LongRunning:
    """Keys of a kind whose run has taken long; ``keys`` names the three that began first, ``process`` one that runs."""

    kind: str
    count: int
    keys: list[str]
    longest: timedelta
    process: str


@dataclass(frozen=True, slots=True)
class OldSnapshot:
    """A transaction that has been open for ``age``, so that no row deleted since can be removed."""

    what: str
    age: timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """The database's own time, and how far ``compute_now()`` is ahead of it."""

    time: datetime
    offset: timedelta


@dataclass(frozen=True, slots=True)
class LiveProcess:
    """A process that said within the last 90 s that it is up."""

    role: str
    host: str
    pid: int
    fingerprint: str
    modules: list[str]


@dataclass(frozen=True, slots=True)
class ConnectionBudget:
    """PostgreSQL connections that live processes may hold together, and how many there are for them."""

    stated: int
    processes: int
    available: int


class _RollBack(Exception):
    """Ends a check's transaction: nothing of it is kept, its settings included."""


@contextmanager
def reading(using: str) -> Iterator[None]:
    """Run what is inside in a READ ONLY transaction of its own, or a savepoint of the one that is open."""
    try:
        with transaction.transaction(using=using):
            with connections[using].cursor() as cursor:
                cursor.execute(READ_ONLY)
                cursor.execute(TIMEOUT)
            yield
            raise _RollBack
    except _RollBack:
        pass


def _rows(using: str, sql: str, params: Any = None) -> list[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def stuck(using: str) -> list[Stuck]:
    """Kinds with keys that keep failing; looks at the latest :data:`CAP` failures."""
    overview.read_by_index(using)
    return [Stuck(*row) for row in _rows(using, STUCK, {"cap": CAP, "attempts": STUCK_ATTEMPTS})]


def unheld(leases: Sequence[str], using: str) -> list[str]:
    """Which of ``leases`` no live member holds, in the order given."""
    return [name for (name,) in _rows(using, UNHELD, [list(leases)])]


def long_running(using: str, longer_than: timedelta) -> list[LongRunning]:
    """Kinds of which live members have been running a key for longer."""
    return [LongRunning(*row) for row in _rows(using, LONG_RUNNING, [longer_than])]


def old_snapshots(using: str, older_than: timedelta) -> list[OldSnapshot]:
    """Transactions that have been open for longer, oldest first."""
    return [OldSnapshot(*row) for row in _rows(using, OLD_SNAPSHOTS, {"age": older_than})]


def live_roles(using: str) -> set[str]:
    """Roles that at least one live member has."""
    return {role for (role,) in _rows(using, LIVE_ROLES)}


def clock(using: str) -> Clock:
    """The database's clock and the offset of ``compute_now()``."""
    return Clock(*_rows(using, CLOCK)[0])


def isolation(using: str) -> str:
    """The isolation that transactions have unless they ask for another, e.g. ``read committed``."""
    return str(_rows(using, ISOLATION)[0][0])


def _silent() -> str:
    return f"{presence.SILENT.total_seconds()} s"


def live_processes(using: str) -> list[LiveProcess]:
    """The processes that are up, by host and pid."""
    return [LiveProcess(*row) for row in _rows(using, LIVE_PROCESSES, [_silent()])]


def connection_budget(using: str) -> ConnectionBudget:
    """What live processes may hold together."""
    return ConnectionBudget(*_rows(using, CONNECTIONS, [_silent()])[0])


def is_standby(using: str) -> bool:
    """Whether the server follows another one and takes no writes."""
    return bool(_rows(using, STANDBY)[0][0])


def answer(using: str) -> None:
    """Ask the server for nothing but an answer; a database error says why there is none."""
    _rows(using, ANSWER)
