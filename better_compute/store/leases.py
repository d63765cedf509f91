"""The leases that members hold (schema/0002_work.sql): who may run a shard's keys, or a whole reconciler.

A lease is a row (name, holder, epoch). Who takes or gives it raises its epoch; (name, epoch) is UNIQUE, so
that is a key update, and the fence's FOR KEY SHARE blocks it for as long as a fenced transaction is open.

Lock order, here and in ``members``, ``work`` and what reads or ends it: lease rows by name, then work rows by
(kind, key), then the member's own row. Only fences, enqueues and a member's write of its own row wait for a lock. All
else skips what is locked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

ENSURE_LEASES = """
INSERT INTO compute_leases (name) SELECT name FROM unnest(%s::text[]) AS wanted (name)
ORDER BY name COLLATE "C" ON CONFLICT (name) DO NOTHING
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

HELD = "SELECT name, holder, epoch FROM compute_leases WHERE holder IS NOT NULL ORDER BY name"

# What a member may have been told or not: the answer of a statement can be lost after its commit.
HELD_BY = "SELECT name, epoch FROM compute_leases WHERE holder = %s ORDER BY name"


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


def ensure(cursor: Any, names: Iterable[str]) -> None:
    """Make the lease rows ``names`` exist; one that exists is left as it is."""
    cursor.execute(ENSURE_LEASES, [sorted(names)])


def acquire(cursor: Any, id: str, names: Iterable[str]) -> dict[str, int]:
    """Take those of ``names`` that are free; returns their epochs."""
    cursor.execute(ACQUIRE, {"id": id, "names": sorted(names)})
    return dict(cursor.fetchall())


def release(cursor: Any, id: str, names: Iterable[str]) -> set[str]:
    """Give back those of ``names`` that the member holds and no open transaction fences; returns them."""
    cursor.execute(RELEASE, {"id": id, "names": sorted(names)})
    return {name for (name,) in cursor.fetchall()}


def held(cursor: Any) -> dict[str, tuple[str, int]]:
    """Every lease that has a holder: name to (holder, epoch)."""
    cursor.execute(HELD)
    return {name: (holder, epoch) for name, holder, epoch in cursor.fetchall()}


def held_by(cursor: Any, id: str) -> dict[str, int]:
    """The leases that the member holds, with their epochs."""
    cursor.execute(HELD_BY, [id])
    return dict(cursor.fetchall())
