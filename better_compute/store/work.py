"""The coalescing work table (schema/0002_work.sql): enqueue, claim, finish, retry.

Lock order everywhere: rows sorted by (kind, key) in code-point order, which is what COLLATE "C" sorts by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

UPSERT = """
INSERT INTO compute_work AS queued (kind, key, shard, not_before, enqueued_at)
SELECT kind, key, shard, compute_now() + delay_ms * interval '1 millisecond', compute_now()
FROM unnest(%s::text[], %s::text[], %s::smallint[], %s::bigint[]) AS wanted (kind, key, shard, delay_ms)
ORDER BY kind, key
ON CONFLICT (kind, key) DO UPDATE SET
  generation = queued.generation + 1,
  not_before = LEAST(queued.not_before, GREATEST(EXCLUDED.not_before, queued.retry_floor))
"""


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A wake-up to write: shard is 0..255, or -1 for a reconciler that is not sharded."""

    kind: str
    key: str
    shard: int
    delay_ms: int = 0


def upsert(cursor: Any, rows: Sequence[WorkRow]) -> None:
    """Enqueue ``rows`` in one statement, coalescing with what is queued and among themselves."""
    soonest: dict[tuple[str, str], WorkRow] = {}
    for row in rows:
        queued = soonest.get((row.kind, row.key))
        if queued is None or row.delay_ms < queued.delay_ms:
            soonest[row.kind, row.key] = row
    ordered = [soonest[key] for key in sorted(soonest)]
    cursor.execute(
        UPSERT,
        [
            [row.kind for row in ordered],
            [row.key for row in ordered],
            [row.shard for row in ordered],
            [row.delay_ms for row in ordered],
        ],
    )
