"""The coalescing work table (schema/0002_work.sql): what is queued, and how a key gets there.

One row a (kind, key). A row is born with a fresh ``id`` (its incarnation) and ``generation`` 1; every further enqueue
bumps the generation. ``claims`` reads what is due and ``ends`` writes how runs ended.

Lock order: as ``leases`` says, with work rows in code-point order of (kind, key), which is what COLLATE "C"
sorts by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from better_compute.store import arrays

#: Attempts after which a key counts as stuck for operators; it is retried nevertheless.
STUCK_ATTEMPTS: Final = 5

UPSERT = """
INSERT INTO compute_work AS queued (kind, key, shard, not_before, enqueued_at)
SELECT kind, key, shard, clock.time + delay_ms * interval '1 millisecond', clock.time
FROM unnest(%s::text[], %s::text[], %s::smallint[], %s::bigint[]) AS wanted (kind, key, shard, delay_ms),
     (SELECT compute_now() AS time) AS clock
ORDER BY kind COLLATE "C", key COLLATE "C"
ON CONFLICT (kind, key) DO UPDATE SET
  generation = queued.generation + 1,
  not_before = LEAST(queued.not_before, GREATEST(EXCLUDED.not_before, queued.retry_floor))
"""

# Resync and seeding: never touches a row that is queued, so it can defeat no backoff. It looks before it inserts,
# since ON CONFLICT waits for whoever holds the row, and then still for an open transaction that inserted it.
INSERT_MISSING = """
INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at, every_ms)
SELECT kind, key, shard, clock.time + delay_ms * interval '1 millisecond', clock.time, every_ms
FROM unnest(%s::text[], %s::text[], %s::smallint[], %s::bigint[], %s::bigint[])
       AS wanted (kind, key, shard, delay_ms, every_ms),
     (SELECT compute_now() AS time) AS clock
WHERE NOT EXISTS (SELECT FROM compute_work queued WHERE queued.kind = wanted.kind AND queued.key = wanted.key)
ORDER BY kind COLLATE "C", key COLLATE "C"
ON CONFLICT (kind, key) DO NOTHING
"""

REQUEUE = """
UPDATE compute_work SET generation = generation + 1, not_before = compute_now(), retry_floor = NULL
WHERE kind = %s AND key = %s
RETURNING shard
"""

# The earliest row that was not due when the queue was looked at last, so that a timer can wait for it instead of a
# poll. One descent a shard.
NEXT_DUE = """
SELECT EXTRACT(EPOCH FROM min(soonest.not_before) - (SELECT compute_now()))
FROM unnest(%(kinds)s::text[]) AS hosted (kind)
CROSS JOIN unnest(%(shards)s::smallint[]) AS held (shard)
CROSS JOIN LATERAL (
  SELECT queued.not_before FROM compute_work queued
  WHERE queued.kind = hosted.kind AND queued.shard = held.shard
    AND queued.not_before > COALESCE(%(since)s, (SELECT compute_now()))
  ORDER BY queued.not_before LIMIT 1
) AS soonest
"""


class WorkRow(NamedTuple):
    """A wake-up to write: shard is 0..255, or -1 for a reconciler that is not sharded."""

    kind: str
    key: str
    shard: int
    delay_ms: int = 0


def upserting(rows: Sequence[WorkRow]) -> tuple[str, list[Any]]:
    """The statement that enqueues ``rows``, coalescing with what is queued and among themselves; with parameters."""
    soonest: dict[tuple[str, str], WorkRow] = {}
    for row in rows:
        queued = soonest.get((row.kind, row.key))
        if queued is None or row.delay_ms < queued.delay_ms:
            soonest[row.kind, row.key] = row
    ordered = [soonest[key] for key in sorted(soonest)]
    return UPSERT, [
        arrays.texts([row.kind for row in ordered]),
        arrays.texts([row.key for row in ordered]),
        arrays.integers([row.shard for row in ordered]),
        arrays.integers([row.delay_ms for row in ordered]),
    ]


def upsert(cursor: Any, rows: Sequence[WorkRow]) -> None:
    """Enqueue ``rows`` in one statement."""
    cursor.execute(*upserting(rows))


def insert_missing(cursor: Any, rows: Iterable[WorkRow], every_ms: Mapping[tuple[str, str], int] | None = None) -> int:
    """Enqueue those of ``rows`` that are not queued, and say how many; queued ones are left as they are."""
    every = every_ms or {}
    ordered = sorted({(row.kind, row.key): row for row in rows}.values(), key=lambda row: (row.kind, row.key))
    if not ordered:
        return 0
    cursor.execute(
        INSERT_MISSING,
        [
            arrays.texts([row.kind for row in ordered]),
            arrays.texts([row.key for row in ordered]),
            arrays.integers([row.shard for row in ordered]),
            arrays.integers([row.delay_ms for row in ordered]),
            arrays.integers([every.get((row.kind, row.key)) for row in ordered]),
        ],
    )
    return int(cursor.rowcount)


def requeue(cursor: Any, kind: str, key: str) -> int | None:
    """Make a queued key due now and forget its floor; returns its shard, or None when it is not queued."""
    cursor.execute(REQUEUE, [kind, key])
    row = cursor.fetchone()
    return None if row is None else int(row[0])


def next_due(
    cursor: Any, kinds: Sequence[str], shards: Sequence[int], *, since: datetime | None = None
) -> timedelta | None:
    """How long until the earliest key becomes due that was not at ``since``; None when there is none.

    Negative when it became due meanwhile. ``since`` is a time on the database's clock, by default its present.
    """
    cursor.execute(NEXT_DUE, {"kinds": list(kinds), "shards": list(shards), "since": since})
    seconds = cursor.fetchone()[0]
    return None if seconds is None else timedelta(seconds=float(seconds))
