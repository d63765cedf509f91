"""Claims: which due keys a member may run. Reads the work table and writes nothing.

The lease says who may run a key, and the member keeps what it runs in memory. A claim passes over the index entries of
keys that are gone. While some old transaction keeps PostgreSQL from removing them they pile up, so each hold remembers
for a kind how far its shard has been looked through (its floor), and a claim begins there. A floor is a hint: rows
below it wait for the next claim without floors, which every poll makes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from better_compute.store import arrays

#: ``last_error`` of a key whose process died while it ran; such a key runs alone until it succeeds.
CRASHED: Final = "The process died while it ran this key."
#: Looks at everything that is due.
NO_FLOOR: Final = "-infinity"

# One bounded index descent a shard; LIMIT stops at the first shards that fill it, so the caller rotates them. What is
# being finished in the same statement runs still, for its snapshot shows it.
DUE: Final = """
due AS MATERIALIZED (
  SELECT found.* FROM unnest(%(shards)s::smallint[], %(floors)s::timestamptz[]) AS held (shard, floor)
  CROSS JOIN LATERAL (
    SELECT queued.id, queued.key, queued.shard, queued.generation, queued.attempts, queued.every_ms,
           queued.not_before, COALESCE(queued.last_error = %(crashed)s, false) AS suspect
    FROM compute_work queued
    WHERE queued.kind = %(kind)s AND queued.shard = held.shard
      AND queued.not_before >= held.floor AND queued.not_before <= (SELECT compute_now())
      AND queued.key NOT IN (SELECT unnest(%(running)s::text[]))
    ORDER BY queued.not_before
    LIMIT %(per_shard)s
  ) AS found
  LIMIT %(limit)s
)"""

CLAIM: Final = f"WITH {DUE} SELECT * FROM due"  # noqa: S608 - fragments of our own


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


@dataclass(frozen=True, slots=True)
class Look:
    """What a claim is to look for: keys of ``kind`` on shards from their floors on, but for those that run."""

    kind: str
    shards: Sequence[int]
    floors: Sequence[str]
    running: Collection[str]
    limit: int
    per_shard: int


def parameters(look: Look) -> dict[str, Any]:
    """What ``DUE`` needs to know."""
    return {
        "kind": look.kind,
        "shards": arrays.integers(look.shards),
        "floors": "{" + ",".join(look.floors) + "}",
        "running": arrays.texts(look.running),
        "limit": look.limit,
        "per_shard": look.per_shard,
        "crashed": CRASHED,
    }


def claim(
    cursor: Any, kind: str, shards: Sequence[int], *, running: Collection[str], limit: int, per_shard: int
) -> list[Claimed]:
    """Read up to ``limit`` due keys of ``kind`` on ``shards`` that are not in ``running``, without floors."""
    look = Look(kind, shards, [NO_FLOOR] * len(shards), running, limit, per_shard)
    cursor.execute(CLAIM, parameters(look))
    return [Claimed._make(row) for row in cursor.fetchall()]
