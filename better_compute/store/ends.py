"""How runs ended, written to the work table under the lease they ran under: done, stay, failed.

A finish deletes the row only at the incarnation and generation it claimed, so a wake-up that arrives while the key runs
is never lost.

Lock order: as ``leases`` says. Rows that an enqueuer holds are skipped; the key then runs once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from better_compute.store import arrays
from better_compute.store.claims import Claimed

#: Longest ``last_error``, in bytes of UTF-8.
MAX_ERROR_BYTES: Final = 4_096

# Nobody enqueued it since it was claimed, nor declared it periodic.
_UNTOUCHED = " AND queued.generation = ran.generation AND queued.every_ms IS NULL"

# Lease rows FOR KEY SHARE in name order, then work rows FOR UPDATE in key order; rows an enqueuer holds are left.
_ENDED: Final = """
WITH fence AS MATERIALIZED (
  SELECT lease.name
  FROM unnest(%(leases)s::text[], %(epochs)s::bigint[]) AS held (name, epoch)
  JOIN compute_leases lease ON lease.name = held.name AND lease.epoch = held.epoch
  JOIN compute_workers member ON member.id = lease.holder
  WHERE lease.holder = %(member)s AND member.expires_at > (SELECT compute_now())
  ORDER BY lease.name
  FOR KEY SHARE OF lease
), ended AS MATERIALIZED (
  SELECT queued.ctid, queued.kind, queued.key{columns}
  FROM unnest(%(keys)s::text[], %(ids)s::bigint[], %(generations)s::bigint[], %(names)s::text[]{arrays})
         AS ran (key, id, generation, name{fields})
  JOIN fence ON fence.name = ran.name
  JOIN compute_work queued ON queued.kind = %(kind)s AND queued.key = ran.key AND queued.id = ran.id{and_generation}
  ORDER BY queued.kind, queued.key
  FOR UPDATE OF queued SKIP LOCKED
)
"""

ENDED_DONE = _ENDED.format(columns="", arrays="", fields="", and_generation=_UNTOUCHED)

# A row that is locked stays where it is, so its place saves looking its key up once more.
DELETE_DONE: Final = """
DELETE FROM compute_work queued USING ended WHERE queued.ctid = ended.ctid RETURNING queued.key
"""

FINISH_DONE = ENDED_DONE + DELETE_DONE

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


class Ended(NamedTuple):
    """A run that ended: the claim, the lease it ran under, and for a failure what went wrong."""

    claimed: Claimed
    lease: str
    epoch: int
    #: Milliseconds until the key comes back; for a failure the backoff.
    wait_ms: int = 0
    floor_ms: int = 0
    error: str = ""


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
    cursor.execute(sql, {"kind": kind, **parameters(member, ended), **columns})
    return {key for (key,) in cursor.fetchall()}


def parameters(member: str, ended: Sequence[Ended]) -> dict[str, Any]:
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


def sanitise(text: str) -> str:
    """Make ``text`` storable: no NUL, no lone surrogate, at most :data:`MAX_ERROR_BYTES` bytes of UTF-8."""
    raw = text.replace("\x00", "").encode("utf-8", errors="replace")
    if len(raw) <= MAX_ERROR_BYTES:
        return raw.decode("utf-8")
    return raw[: MAX_ERROR_BYTES - 3].decode("utf-8", errors="ignore") + "…"
