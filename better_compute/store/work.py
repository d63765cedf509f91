"""The coalescing work table (schema/0002_work.sql): enqueue, claim, finish, retry.

One row a (kind, key). A row is born with a fresh ``id`` (its incarnation) and ``generation`` 1; every
further enqueue bumps the generation. A finish deletes the row only at the incarnation and generation it
claimed, so a wake-up that arrives while the key runs is never lost. A claim writes nothing: the lease
says who may run a key, and the member keeps what it runs in memory.

Lock order: as ``leases`` says, with work rows in code-point order of (kind, key), which is what COLLATE "C"
sorts by. Finishes skip rows that an enqueuer holds; the key then runs once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from better_compute.store import arrays

#: Longest ``last_error``, in bytes of UTF-8.
MAX_ERROR_BYTES: Final = 4_096
#: Attempts after which a key counts as stuck for operators; it is retried nevertheless.
STUCK_ATTEMPTS: Final = 5
#: ``last_error`` of a key whose process died while it ran; such a key runs alone until it succeeds.
CRASHED: Final = "The process died while it ran this key."

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

# A key that became periodic, or whose interval changed. Takes work rows in order, and leaves those somebody holds.
ADOPT_PERIODIC = """
WITH changed AS MATERIALIZED (
  SELECT queued.kind, queued.key, wanted.every_ms
  FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS wanted (kind, key, every_ms)
  JOIN compute_work queued ON queued.kind = wanted.kind AND queued.key = wanted.key
  WHERE queued.every_ms IS DISTINCT FROM wanted.every_ms
  ORDER BY queued.kind, queued.key
  FOR UPDATE OF queued SKIP LOCKED
)
UPDATE compute_work queued SET every_ms = changed.every_ms
FROM changed WHERE queued.kind = changed.kind AND queued.key = changed.key
"""

# A key that is periodic no more: while a release rolls out, only once no live member declares it. Reads every row
# of the kinds; locks as above.
DROP_PERIODIC = """
WITH dropped AS MATERIALIZED (
  SELECT queued.kind, queued.key
  FROM compute_work queued
  WHERE queued.kind = ANY(%(hosted)s::text[]) AND queued.every_ms IS NOT NULL
    AND (queued.kind, queued.key) NOT IN (
      SELECT kind, key FROM unnest(%(kinds)s::text[], %(keys)s::text[]) AS wanted (kind, key))
    AND NOT EXISTS (
      SELECT FROM compute_workers member
      WHERE member.expires_at > (SELECT compute_now())
        AND 'periodic:' || queued.kind || ':' || queued.key = ANY(member.kinds))
  ORDER BY queued.kind, queued.key
  FOR UPDATE OF queued SKIP LOCKED
)
UPDATE compute_work queued SET every_ms = NULL
FROM dropped WHERE queued.kind = dropped.kind AND queued.key = dropped.key
"""

# One bounded index descent a shard; LIMIT stops at the first shards that fill it, so the caller rotates them.
CLAIM = """
SELECT due.id, due.key, due.shard, due.generation, due.attempts, due.every_ms, due.not_before, due.suspect
FROM unnest(%(shards)s::smallint[]) AS held (shard)
CROSS JOIN LATERAL (
  SELECT queued.id, queued.key, queued.shard, queued.generation, queued.attempts, queued.every_ms,
         queued.not_before, COALESCE(queued.last_error = %(crashed)s, false) AS suspect
  FROM compute_work queued
  WHERE queued.kind = %(kind)s AND queued.shard = held.shard AND queued.not_before <= (SELECT compute_now())
    AND queued.key NOT IN (SELECT unnest(%(running)s::text[]))
  ORDER BY queued.not_before
  LIMIT %(per_shard)s
) AS due
LIMIT %(limit)s
"""

# Nobody enqueued it since it was claimed, nor declared it periodic.
_UNTOUCHED = " AND queued.generation = ran.generation AND queued.every_ms IS NULL"

# Lease rows FOR KEY SHARE in name order, then work rows FOR UPDATE in key order; rows an enqueuer holds are left.
_ENDED = """
WITH fence AS MATERIALIZED (
  SELECT lease.name
  FROM unnest(%(leases)s::text[], %(epochs)s::bigint[]) AS held (name, epoch)
  JOIN compute_leases lease ON lease.name = held.name AND lease.epoch = held.epoch
  JOIN compute_workers member ON member.id = lease.holder
  WHERE lease.holder = %(member)s AND member.expires_at > (SELECT compute_now())
  ORDER BY lease.name
  FOR KEY SHARE OF lease
), ended AS MATERIALIZED (
  SELECT queued.kind, queued.key{columns}
  FROM unnest(%(keys)s::text[], %(ids)s::bigint[], %(generations)s::bigint[], %(names)s::text[]{arrays})
         AS ran (key, id, generation, name{fields})
  JOIN fence ON fence.name = ran.name
  JOIN compute_work queued ON queued.kind = %(kind)s AND queued.key = ran.key AND queued.id = ran.id{and_generation}
  ORDER BY queued.kind, queued.key
  FOR UPDATE OF queued SKIP LOCKED
)
"""

ENDED_DONE = _ENDED.format(columns="", arrays="", fields="", and_generation=_UNTOUCHED)

FINISH_DONE = (
    ENDED_DONE
    + """
DELETE FROM compute_work queued USING ended
WHERE queued.kind = ended.kind AND queued.key = ended.key
RETURNING queued.key
"""
)

# A key that stays: periodic (comes back after `wait_ms`), SYNC_AGAIN (wait 0: the tail of the queue), or DONE but
# enqueued meanwhile. It succeeded, so its failures are forgotten.
FINISH_STAY = (
    _ENDED.format(
        columns=", ran.generation, ran.wait_ms",
        arrays=", %(waits)s::bigint[]",
        fields=", wait_ms",
        and_generation="",
    )
    + """
UPDATE compute_work queued SET
  not_before = clock.time
    + CASE WHEN queued.generation = ended.generation THEN ended.wait_ms ELSE 0 END * interval '1 millisecond',
  attempts = 0, retry_floor = NULL, last_error = NULL, last_error_at = NULL
FROM ended, (SELECT compute_now() AS time) AS clock
WHERE queued.kind = ended.kind AND queued.key = ended.key
RETURNING queued.key
"""
)

# Enqueued while it failed: the change may have mended it, so it waits only for its floor.
FINISH_FAILED = (
    _ENDED.format(
        columns=", ran.generation, ran.wait_ms, ran.floor_ms, ran.error",
        arrays=", %(waits)s::bigint[], %(floors)s::bigint[], %(errors)s::text[]",
        fields=", wait_ms, floor_ms, error",
        and_generation="",
    )
    + """
UPDATE compute_work queued SET
  attempts = queued.attempts + 1,
  not_before = clock.time + interval '1 millisecond'
    * CASE WHEN queued.generation = ended.generation THEN ended.wait_ms ELSE ended.floor_ms END,
  retry_floor = clock.time + ended.floor_ms * interval '1 millisecond',
  last_error = ended.error, last_error_at = clock.time
FROM ended, (SELECT compute_now() AS time) AS clock
WHERE queued.kind = ended.kind AND queued.key = ended.key
RETURNING queued.key
"""
)

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


class Claimed(NamedTuple):
    """A due key as it was read: what a finish must match."""

    id: int
    key: str
    shard: int
    generation: int
    attempts: int
    every_ms: int | None
    due_at: datetime
    #: The process that ran it last died.
    suspect: bool


class Ended(NamedTuple):
    """A run that ended: the claim, the lease it ran under, and for a failure what went wrong."""

    claimed: Claimed
    lease: str
    epoch: int
    #: Milliseconds until the key comes back; for a failure the backoff.
    wait_ms: int = 0
    floor_ms: int = 0
    error: str = ""


def upsert(cursor: Any, rows: Sequence[WorkRow], *, before: str = "", commits: bool = False) -> None:
    """Enqueue ``rows`` in one statement, coalescing with what is queued and among themselves.

    ``before``, and with ``commits`` COMMIT, go out in the same message, for a cursor that binds its values itself.
    """
    soonest: dict[tuple[str, str], WorkRow] = {}
    for row in rows:
        queued = soonest.get((row.kind, row.key))
        if queued is None or row.delay_ms < queued.delay_ms:
            soonest[row.kind, row.key] = row
    ordered = [soonest[key] for key in sorted(soonest)]
    cursor.execute(
        f"{before}{UPSERT}; COMMIT" if commits else f"{before}{UPSERT}",
        [
            arrays.texts([row.kind for row in ordered]),
            arrays.texts([row.key for row in ordered]),
            arrays.integers([row.shard for row in ordered]),
            arrays.integers([row.delay_ms for row in ordered]),
        ],
    )


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


def declared(kind: str, key: str) -> str:
    """How a member's row says that it declares a periodic key."""
    return f"periodic:{kind}:{key}"


def seed_periodic(cursor: Any, rows: Sequence[WorkRow], every_ms: Mapping[tuple[str, str], int]) -> None:
    """Make every declared periodic key exist with its interval; one that is queued keeps its time."""
    insert_missing(cursor, rows, every_ms)
    kinds, keys = [row.kind for row in rows], [row.key for row in rows]
    cursor.execute(ADOPT_PERIODIC, [kinds, keys, [every_ms[row.kind, row.key] for row in rows]])


def drop_periodic(cursor: Any, hosted: Sequence[str], rows: Sequence[WorkRow]) -> None:
    """Have keys of the ``hosted`` kinds come back no more that neither ``rows`` nor a live member declares."""
    cursor.execute(
        DROP_PERIODIC,
        {"hosted": list(hosted), "kinds": [row.kind for row in rows], "keys": [row.key for row in rows]},
    )


def claim(
    cursor: Any, kind: str, shards: Sequence[int], *, running: Sequence[str], limit: int, per_shard: int
) -> list[Claimed]:
    """Read up to ``limit`` due keys of ``kind`` on ``shards`` that are not in ``running``; write nothing."""
    cursor.execute(
        CLAIM,
        {
            "shards": arrays.integers(shards),
            "kind": kind,
            "running": arrays.texts(running),
            "limit": limit,
            "per_shard": per_shard,
            "crashed": CRASHED,
        },
    )
    return [Claimed._make(row) for row in cursor.fetchall()]


def finish_done(cursor: Any, member: str, kind: str, ended: Sequence[Ended]) -> set[str]:
    """Delete keys that nobody enqueued since they were claimed; returns the ones deleted."""
    return _finish(cursor, FINISH_DONE, member, kind, ended)


def finish_stay(cursor: Any, member: str, kind: str, ended: Sequence[Ended]) -> set[str]:
    """Put keys back with their failures forgotten, due after ``wait_ms`` or at once when enqueued meanwhile."""
    return _finish(cursor, FINISH_STAY, member, kind, ended, waits=arrays.integers([run.wait_ms for run in ended]))


def finish_failed(cursor: Any, member: str, kind: str, ended: Sequence[Ended]) -> set[str]:
    """Put keys back with one more attempt, their error, and a time below which no enqueue may pull them."""
    return _finish(
        cursor,
        FINISH_FAILED,
        member,
        kind,
        ended,
        waits=arrays.integers([run.wait_ms for run in ended]),
        floors=arrays.integers([run.floor_ms for run in ended]),
        errors=arrays.texts([sanitise(run.error) for run in ended]),
    )


def _finish(cursor: Any, sql: str, member: str, kind: str, ended: Sequence[Ended], **columns: str) -> set[str]:
    if not ended:
        return set()
    cursor.execute(sql, {"kind": kind, **ended_parameters(member, ended), **columns})
    return {key for (key,) in cursor.fetchall()}


def ended_parameters(member: str, ended: Sequence[Ended]) -> dict[str, Any]:
    """What ``ENDED_DONE`` needs to know of runs of one kind."""
    leases = sorted({(run.lease, run.epoch) for run in ended})
    return {
        "member": member,
        "leases": arrays.texts([name for name, _ in leases]),
        "epochs": arrays.integers([epoch for _, epoch in leases]),
        "keys": arrays.texts([run.claimed.key for run in ended]),
        "ids": arrays.integers([run.claimed.id for run in ended]),
        "generations": arrays.integers([run.claimed.generation for run in ended]),
        "names": arrays.texts([run.lease for run in ended]),
    }


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


def sanitise(text: str) -> str:
    """Make ``text`` storable: no NUL, no lone surrogate, at most :data:`MAX_ERROR_BYTES` bytes of UTF-8."""
    raw = text.replace("\x00", "").encode("utf-8", errors="replace")
    if len(raw) <= MAX_ERROR_BYTES:
        return raw.decode("utf-8")
    return raw[: MAX_ERROR_BYTES - 3].decode("utf-8", errors="ignore") + "…"
