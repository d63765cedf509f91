"""What the operator's home page shows, read in a fixed number of bounded statements.

None of them locks anything, and none scans more than :data:`CAP` rows of a kind, however long the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from django.db import connections, transaction as django_transaction

from better_compute import conf
from better_compute.store import presence
from better_compute.store.session import answering

#: Rows of one kind that are counted; a count above it means "more than this many".
CAP: Final = 10_000
#: The longest any statement of an operator's page may run, in milliseconds.
STATEMENT_TIMEOUT_MS: Final = 5_000

# What is counted to a LIMIT is to be read to it and no further. A bitmap reads all of its range before the first row
# comes out, and a planner that takes a queue for shorter than the LIMIT prefers one: it read 1,000,000 keys.
BY_INDEX = "SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL jit = off"

# A loose scan steps from one (kind, shard) to the next through the index on (kind, shard, not_before), so
# its cost is the number of queues and not of rows. The inner LIMITs keep the planner from joining the table.
DEPTH = """
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT compute_now() AS at
), step AS (
  (SELECT kind, shard, 1 AS n FROM compute_work ORDER BY kind, shard LIMIT 1)
  UNION ALL
  SELECT next.kind, next.shard, step.n + 1
  FROM step CROSS JOIN LATERAL (
    SELECT kind, shard FROM compute_work w
    WHERE (w.kind, w.shard) > (step.kind, step.shard)
    ORDER BY w.kind, w.shard LIMIT 1
  ) next
  WHERE step.n < 20000
), queue AS MATERIALIZED (
  SELECT kind, array_agg(shard) AS shards FROM step GROUP BY kind
), failing AS MATERIALIZED (
  SELECT kind, count(*) AS n FROM (
    SELECT kind, attempts FROM compute_work WHERE last_error_at IS NOT NULL
    ORDER BY last_error_at DESC LIMIT %(cap)s + 1
  ) latest WHERE attempts > 0 GROUP BY kind
)
SELECT queue.kind, due.n AS due, future.n AS future, COALESCE(failing.n, 0) AS failing, oldest.at AS oldest_due_at
FROM queue
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (
    SELECT 1 FROM unnest(queue.shards) AS held (shard) CROSS JOIN LATERAL (
      SELECT 1 FROM compute_work w
      WHERE w.kind = queue.kind AND w.shard = held.shard AND w.not_before <= (SELECT at FROM clock) LIMIT %(cap)s + 1
    ) row LIMIT %(cap)s + 1
  ) counted
) due
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM (
    SELECT 1 FROM unnest(queue.shards) AS held (shard) CROSS JOIN LATERAL (
      SELECT 1 FROM compute_work w
      WHERE w.kind = queue.kind AND w.shard = held.shard AND w.not_before > (SELECT at FROM clock) LIMIT %(cap)s + 1
    ) row LIMIT %(cap)s + 1
  ) counted
) future
CROSS JOIN LATERAL (
  SELECT min(first.not_before) AS at FROM unnest(queue.shards) AS held (shard) CROSS JOIN LATERAL (
    SELECT w.not_before FROM compute_work w
    WHERE w.kind = queue.kind AND w.shard = held.shard AND w.not_before <= (SELECT at FROM clock)
    ORDER BY w.not_before LIMIT 1
  ) first
) oldest
LEFT JOIN failing ON failing.kind = queue.kind
ORDER BY queue.kind
"""

LEASES = """
SELECT l.name, l.holder, l.epoch, l.acquired_at, w.host, w.pid, w.expires_at > compute_now() AS live
FROM compute_leases l LEFT JOIN compute_workers w ON w.id = l.holder
ORDER BY l.name LIMIT %(limit)s
"""

WORKERS = """
SELECT w.id, w.role, w.host, w.pid, w.started_at, w.expires_at, w.expires_at > compute_now() AS live, w.draining,
       (SELECT count(*) FROM compute_leases l WHERE l.holder = w.id) AS leases,
       (SELECT count(*) FROM jsonb_path_query(w.inflight, '$[*].keys[*]')) AS inflight
FROM compute_workers w ORDER BY w.expires_at DESC LIMIT %(limit)s
"""

PROCESSES = f"""
SELECT id, role, host, pid, fingerprint, started_at, seen_at,
       seen_at > compute_now() - interval '{presence.SILENT.total_seconds()} s' AS live
FROM compute_processes
ORDER BY seen_at DESC LIMIT %(limit)s
"""  # noqa: S608 - its own constant

LEDGER = """
SELECT seq, name, action, version, applied_at, duration_ms FROM compute_migrations ORDER BY seq DESC LIMIT %(limit)s
"""

# Through the partial index on last_error_at.
ERRORS = """
SELECT kind, key, attempts, last_error, last_error_at, not_before FROM compute_work
WHERE last_error_at IS NOT NULL ORDER BY last_error_at DESC LIMIT %(limit)s
"""

# Through the partial index on refused acts.
REFUSALS = """
SELECT id, at, principal, tenant_id, method, resource_type, resource_id, code FROM compute_audit_events
WHERE outcome = 'denied' ORDER BY at DESC, id DESC LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class KindDepth:
    """How much of a kind is queued. Counts stop at :data:`CAP` + 1."""

    kind: str
    due: int = 0
    future: int = 0
    failing: int = 0
    oldest_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease and the member that holds it; ``live`` is None when the holder has no row."""

    name: str
    holder: str | None
    epoch: int
    acquired_at: datetime | None
    host: str | None
    pid: int | None
    live: bool | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A member, how many leases it holds and how many keys it is running."""

    id: str
    role: str
    host: str
    pid: int
    started_at: datetime
    expires_at: datetime
    live: bool
    draining: bool
    leases: int
    inflight: int


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process and the fingerprint of the modules it hosts; one that is not ``live`` ended without a word."""

    id: Any
    role: str
    host: str
    pid: int
    fingerprint: str
    started_at: datetime
    seen_at: datetime
    live: bool


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A line of the migration ledger."""

    seq: int
    name: str
    action: str
    version: str
    applied_at: datetime
    duration_ms: int


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A key that failed, and when it runs again."""

    kind: str
    key: str
    attempts: int
    last_error: str | None
    last_error_at: datetime
    not_before: datetime


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """An act that was denied; ``tenant_id`` is empty for the installation."""

    id: Any
    at: datetime
    principal: str
    tenant_id: str
    method: str
    resource_type: str
    resource_id: str
    code: str | None


@contextmanager
def bounded(using: str | None = None) -> Iterator[None]:
    """Run what is inside in a transaction whose statements stop after :data:`STATEMENT_TIMEOUT_MS`.

    A server that stands still stops nothing, so the connection is closed a moment later: whoever asks how things are
    must have an answer then of all times.
    """
    alias = using or conf.current().database
    with answering(connections[alias], STATEMENT_TIMEOUT_MS / 1_000 + 1), django_transaction.atomic(using=alias):
        with connections[alias].cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}")
        yield


def read_by_index(using: str) -> None:
    """Keep the planner to index scans until the open transaction ends, so that a LIMIT ends what is read."""
    with connections[using].cursor() as cursor:
        cursor.execute(BY_INDEX)


_Row = TypeVar("_Row")


def _read(sql: str, row: type[_Row], **params: int) -> list[_Row]:
    with connections[conf.current().database].cursor() as cursor:
        cursor.execute(sql, params)
        return [row(*values) for values in cursor.fetchall()]


def depth() -> list[KindDepth]:
    """Every kind that has a row, in code-point order; wants an open transaction, as :func:`read_by_index` does."""
    read_by_index(conf.current().database)
    return _read(DEPTH, KindDepth, cap=CAP)


def leases(limit: int = 2_000) -> list[LeaseRow]:
    """The leases by name."""
    return _read(LEASES, LeaseRow, limit=limit)


def workers(limit: int = 50) -> list[WorkerRow]:
    """The members, those that live longest first."""
    return _read(WORKERS, WorkerRow, limit=limit)


def processes(limit: int = 50) -> list[ProcessRow]:
    """The processes, those seen last first."""
    return _read(PROCESSES, ProcessRow, limit=limit)


def ledger(limit: int = 10) -> list[LedgerRow]:
    """The newest lines of the migration ledger."""
    return _read(LEDGER, LedgerRow, limit=limit)


def errors(limit: int = 10) -> list[ErrorRow]:
    """The keys that failed last."""
    return _read(ERRORS, ErrorRow, limit=limit)


def refusals(limit: int = 10) -> list[RefusalRow]:
    """The acts that were denied last."""
    return _read(REFUSALS, RefusalRow, limit=limit)
