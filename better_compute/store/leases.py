"""Members and the leases they hold (schema/0002_work.sql). Only the database's clock decides.

A lease is a row (name, holder, epoch). Who takes or gives it raises its epoch; (name, epoch) is UNIQUE, so
that is a key update, and the fence's FOR KEY SHARE blocks it for as long as a fenced transaction is open.
A member is a row with an end that it pushes ahead. A dead member's row is deleted ("buried") in the same
statement that marks the keys it ran as suspects, and only leases without a member row are free: whoever
takes over a shard finds its suspects marked.

Lock order, here and in ``work`` and ``passes``: lease rows by name, then work rows by (kind, key), then the member's
own row. Only fences, enqueues and a member's write of its own row wait for a lock. All else skips what is locked, so
that burying, which goes from members to work rows, can close no circle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from psycopg import sql

from better_compute.contract.errors import LeaseLost
from better_compute.contract.ports import LeaseInfo
from better_compute.store import arrays
from better_compute.store.passes import Noted
from better_compute.store.work import CRASHED

#: Channel on which members tell each other that leases or members changed.
MEMBERS_CHANNEL: Final = "compute_members"

REGISTER = """
INSERT INTO compute_workers (id, role, host, pid, backend_pid, started_at, expires_at, connections, kinds)
VALUES (%(id)s, %(role)s, %(host)s, %(pid)s, CASE WHEN NOT %(pooled)s THEN pg_backend_pid() END, compute_now(),
        compute_now() + %(ttl_ms)s * interval '1 millisecond', %(connections)s, %(kinds)s)
"""

ENSURE_LEASES = """
INSERT INTO compute_leases (name) SELECT name FROM unnest(%s::text[]) AS wanted (name)
ORDER BY name COLLATE "C" ON CONFLICT (name) DO NOTHING
"""

# A row that has ended stays ended, so a member that slept past its end learns it here.
RENEW = """
UPDATE compute_workers
SET expires_at = compute_now() + %(ttl_ms)s * interval '1 millisecond',
    backend_pid = CASE WHEN NOT %(pooled)s THEN pg_backend_pid() END
WHERE id = %(id)s AND expires_at > compute_now()
"""

DRAIN = "UPDATE compute_workers SET draining = true WHERE id = %s"

NOTE_RUNNING = "UPDATE compute_workers SET inflight = %s::jsonb WHERE id = %s"

LEAVE = "DELETE FROM compute_workers WHERE id = %s"

LIVE_MEMBERS = """
SELECT id, role, kinds, draining FROM compute_workers
WHERE expires_at > compute_now() ORDER BY id
"""

# Dead: past its end, or one beat late with its heartbeat connection gone. Rows that are being renewed are skipped.
# Their keys get one more attempt and a short wait; rows that an enqueuer or a frozen run holds are left. A note may be
# another release's: what cannot be read in it makes no suspects, and must not keep the dead from being buried.
BURY = """
WITH dead AS MATERIALIZED (
  SELECT member.id FROM compute_workers member, (SELECT compute_now() AS time) AS clock
  WHERE member.id <> ALL(%(own)s::text[]) AND (
    member.expires_at <= clock.time
    OR (member.expires_at <= clock.time + (%(ttl_ms)s - %(beat_ms)s) * interval '1 millisecond'
        AND member.backend_pid IS NOT NULL
        AND NOT EXISTS (SELECT FROM pg_stat_activity backend WHERE backend.pid = member.backend_pid)))
  ORDER BY member.id
  FOR UPDATE OF member SKIP LOCKED
), buried AS (
  DELETE FROM compute_workers member USING dead WHERE member.id = dead.id
  RETURNING member.id, member.inflight
), suspects AS MATERIALIZED (
  SELECT queued.kind, queued.key,
         LEAST(960, 2 ^ LEAST(queued.attempts, 10)) * (0.5 + random() / 2) * interval '1 second' AS wait
  FROM buried
  CROSS JOIN LATERAL jsonb_path_query(buried.inflight, 'lax $[*]') AS noted
  CROSS JOIN LATERAL ROWS FROM (
    jsonb_path_query(noted, 'lax $.keys[*]'), jsonb_path_query(noted, 'lax $.ids[*]')) AS ran (key, id)
  JOIN compute_work queued
    ON queued.kind = noted ->> 'kind' AND queued.key = ran.key #>> '{}' AND to_jsonb(queued.id) = ran.id
  ORDER BY queued.kind, queued.key
  FOR UPDATE OF queued SKIP LOCKED
), marked AS (
  UPDATE compute_work queued SET
    attempts = queued.attempts + 1,
    not_before = clock.time + suspects.wait,
    retry_floor = clock.time + LEAST(suspects.wait, interval '30 seconds'),
    last_error = %(crashed)s, last_error_at = clock.time
  FROM suspects, (SELECT compute_now() AS time) AS clock
  WHERE queued.kind = suspects.kind AND queued.key = suspects.key
)
SELECT id FROM buried ORDER BY id
"""

# Free: given back, or held by a member that is buried. A lease whose fence is open is skipped until the next try.
ACQUIRE = """
WITH free AS MATERIALIZED (
  SELECT lease.name FROM compute_leases lease
  WHERE lease.name = ANY(%(names)s)
    AND (lease.holder IS NULL OR NOT EXISTS (SELECT FROM compute_workers member WHERE member.id = lease.holder))
    AND EXISTS (SELECT FROM compute_workers member WHERE member.id = %(id)s AND member.expires_at > compute_now())
  ORDER BY lease.name
  FOR UPDATE OF lease SKIP LOCKED
)
UPDATE compute_leases lease SET holder = %(id)s, epoch = lease.epoch + 1, acquired_at = compute_now()
FROM free WHERE lease.name = free.name
RETURNING lease.name, lease.epoch
"""

RELEASE = """
WITH held AS MATERIALIZED (
  SELECT lease.name FROM compute_leases lease
  WHERE lease.name = ANY(%(names)s) AND lease.holder = %(id)s
  ORDER BY lease.name
  FOR UPDATE OF lease SKIP LOCKED
)
UPDATE compute_leases lease SET holder = NULL, epoch = lease.epoch + 1, acquired_at = NULL
FROM held WHERE lease.name = held.name
RETURNING lease.name
"""

# KEY SHARE: renewing the member never waits for it, taking the lease always does.
FENCE = """
SELECT 1 FROM compute_leases lease JOIN compute_workers member ON member.id = lease.holder
WHERE lease.name = %s AND lease.holder = %s AND lease.epoch = %s AND member.expires_at > compute_now()
FOR KEY SHARE OF lease
"""

# Several leases at once, for run_many: one row each, locked in name order.
FENCE_ALL = """
SELECT 1 FROM unnest(%(names)s::text[], %(holders)s::text[], %(epochs)s::bigint[]) AS wanted (name, holder, epoch)
JOIN compute_leases lease
  ON lease.name = wanted.name AND lease.holder = wanted.holder AND lease.epoch = wanted.epoch
JOIN compute_workers member ON member.id = lease.holder
WHERE member.expires_at > (SELECT compute_now())
ORDER BY lease.name
FOR KEY SHARE OF lease
"""

HELD = "SELECT name, holder, epoch FROM compute_leases WHERE holder IS NOT NULL ORDER BY name"

# What a member may have been told or not: the answer of a statement can be lost after its commit.
HELD_BY = "SELECT name, epoch FROM compute_leases WHERE holder = %s ORDER BY name"

PAUSED = "SELECT scope FROM compute_pauses"


@dataclass(frozen=True, slots=True)
class Member:
    """A live member as others see it."""

    id: str
    role: str
    kinds: frozenset[str]
    draining: bool


def shard_lease(role: str, shard: int) -> str:
    """The lease of a shard: ``shard:<n>`` for controllers, ``<role>/shard:<n>`` for another role."""
    return f"shard:{shard}" if role == "controllers" else f"{role}/shard:{shard}"


def singleton_lease(reconciler: str) -> str:
    """The lease of a reconciler that one worker at a time runs."""
    return f"singleton:{reconciler}"


def names_for(kind: str, shard: int) -> list[str]:
    """The leases under which a key of ``kind`` on ``shard`` may run, whatever its role; -1 is a singleton."""
    if shard < 0:
        return [singleton_lease(kind)]
    return [shard_lease("controllers", shard), shard_lease("scheduler", shard)]


def register(
    cursor: Any,
    *,
    id: str,
    role: str,
    host: str,
    pid: int,
    ttl_ms: int,
    connections: int,
    kinds: Iterable[str],
    pooled: bool = False,
) -> None:
    """Insert a member; its id must be fresh. ``pooled``: the backend is a pooler's, and says nothing of its life."""
    cursor.execute(
        REGISTER,
        {
            "id": id,
            "role": role,
            "host": host,
            "pid": pid,
            "ttl_ms": ttl_ms,
            "connections": connections,
            "kinds": sorted(kinds),
            "pooled": pooled,
        },
    )


def ensure(cursor: Any, names: Iterable[str]) -> None:
    """Make the lease rows ``names`` exist; one that exists is left as it is."""
    cursor.execute(ENSURE_LEASES, [sorted(names)])


def renew(cursor: Any, id: str, ttl_ms: int, *, pooled: bool = False) -> bool:
    """Push the member's end ahead; False when it is dead and must register under a new id."""
    cursor.execute(RENEW, {"id": id, "ttl_ms": ttl_ms, "pooled": pooled})
    return int(cursor.rowcount) == 1


def drain(cursor: Any, id: str) -> None:
    """Say that the member takes no more leases, so that others plan without it."""
    cursor.execute(DRAIN, [id])


def leave(cursor: Any, id: str) -> None:
    """Delete the member; leases it still holds become free."""
    cursor.execute(LEAVE, [id])


def note_running(cursor: Any, id: str, noted: Sequence[Noted]) -> None:
    """Write which keys the member runs, for whoever buries it."""
    cursor.execute(NOTE_RUNNING, [msgspec.json.encode(noted).decode(), id])


def live_members(cursor: Any) -> list[Member]:
    """Every live member, by id."""
    cursor.execute(LIVE_MEMBERS)
    return [Member(id, role, frozenset(kinds), draining) for id, role, kinds, draining in cursor.fetchall()]


def bury(cursor: Any, own: Collection[str], *, ttl_ms: int, beat_ms: int) -> list[str]:
    """Delete dead members and mark the keys they ran as suspects; returns their ids.

    The members of the calling process, ``own``, are spared: it lives, whatever their rows say.
    """
    cursor.execute(BURY, {"own": list(own), "ttl_ms": ttl_ms, "beat_ms": beat_ms, "crashed": CRASHED})
    return [dead for (dead,) in cursor.fetchall()]


def acquire(cursor: Any, id: str, names: Iterable[str]) -> dict[str, int]:
    """Take those of ``names`` that are free; returns their epochs."""
    cursor.execute(ACQUIRE, {"id": id, "names": sorted(names)})
    return dict(cursor.fetchall())


def release(cursor: Any, id: str, names: Iterable[str]) -> set[str]:
    """Give back those of ``names`` that the member holds and no open transaction fences; returns them."""
    cursor.execute(RELEASE, {"id": id, "names": sorted(names)})
    return {name for (name,) in cursor.fetchall()}


def fence(cursor: Any, lease: LeaseInfo) -> None:
    """Make the open transaction one that can commit only under ``lease``.

    Raises
    ------
    LeaseLost
        When the lease has another holder or epoch, or the member's time is over.
    """
    cursor.execute(FENCE, [lease.name, lease.holder, lease.epoch])
    if cursor.fetchone() is None:
        raise lost([lease])


def fence_all(cursor: Any, wanted: Sequence[LeaseInfo]) -> None:
    """Fence several leases: :class:`LeaseLost` when one of them is gone."""
    if len(wanted) == 1:
        fence(cursor, wanted[0])
        return
    cursor.execute(FENCE_ALL, _columns(wanted))
    if len(cursor.fetchall()) != len(wanted):
        raise lost(wanted)


def fence_all_of(wanted: Sequence[LeaseInfo]) -> sql.Composable:
    """The statement that fences several leases, with its values in it; it returns a row for each that is held."""
    text = FENCE_ALL.replace("%(", "{").replace(")s", "}")
    return sql.SQL(text).format(**{name: sql.Literal(values) for name, values in _columns(wanted).items()})


def lost(wanted: Sequence[LeaseInfo]) -> LeaseLost:
    """What a fence of ``wanted`` raises when one of them is gone."""
    first = wanted[0]
    if len(wanted) == 1:
        return LeaseLost(f"{first.name} at epoch {first.epoch} is no longer held by {first.holder}.")
    return LeaseLost(f"One of {len(wanted)} leases, {first.name} and others, is no longer held.")


def _columns(wanted: Sequence[LeaseInfo]) -> dict[str, str]:
    return {
        "names": arrays.texts([lease.name for lease in wanted]),
        "holders": arrays.texts([lease.holder for lease in wanted]),
        "epochs": arrays.integers([lease.epoch for lease in wanted]),
    }


def held(cursor: Any) -> dict[str, tuple[str, int]]:
    """Every lease that has a holder: name to (holder, epoch)."""
    cursor.execute(HELD)
    return {name: (holder, epoch) for name, holder, epoch in cursor.fetchall()}


def held_by(cursor: Any, id: str) -> dict[str, int]:
    """The leases that the member holds, with their epochs."""
    cursor.execute(HELD_BY, [id])
    return dict(cursor.fetchall())


def paused(cursor: Any) -> frozenset[str]:
    """The scopes an operator has paused: ``kind:<reconciler>`` and ``member:<id>``."""
    cursor.execute(PAUSED)
    return frozenset(scope for (scope,) in cursor.fetchall())
