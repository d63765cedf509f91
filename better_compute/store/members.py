"""Members: the live worker processes, each a row with an end that it pushes ahead (schema/0002_work.sql).

Only the database's clock decides. A dead member's row is deleted ("buried") in the same statement that marks the keys
it ran as suspects, and only leases without a member row are free: whoever takes over a shard finds its suspects marked.

Lock order: as ``leases`` says; burying goes from members to work rows and skips what is locked, so it can close no
circle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from better_compute.store.claims import CRASHED
from better_compute.store.passes import Noted

#: Channel on which members tell each other that leases or members changed.
MEMBERS_CHANNEL: Final = "compute_members"

REGISTER = """
INSERT INTO compute_workers (id, role, host, pid, backend_pid, started_at, expires_at, connections, kinds)
VALUES (%(id)s, %(role)s, %(host)s, %(pid)s, CASE WHEN NOT %(pooled)s THEN pg_backend_pid() END, compute_now(),
        compute_now() + %(ttl_ms)s * interval '1 millisecond', %(connections)s, %(kinds)s)
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


@dataclass(frozen=True, slots=True)
class Member:
    """A live member as others see it."""

    id: str
    role: str
    kinds: frozenset[str]
    draining: bool


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
