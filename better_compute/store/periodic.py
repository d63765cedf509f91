"""Keys that come back by themselves: rows of the work table with an interval, ``every_ms``.

Lock order: as ``work`` says; rows that somebody holds are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from better_compute.store import work
from better_compute.store.work import WorkRow

# A key that became periodic, or whose interval changed. Takes work rows in order, and leaves those somebody holds.
ADOPT = """
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
DROP = """
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


def declared(kind: str, key: str) -> str:
    """How a member's row says that it declares a periodic key."""
    return f"periodic:{kind}:{key}"


def seed(cursor: Any, rows: Sequence[WorkRow], every_ms: Mapping[tuple[str, str], int]) -> None:
    """Make every declared periodic key exist with its interval; one that is queued keeps its time."""
    work.insert_missing(cursor, rows, every_ms)
    kinds, keys = [row.kind for row in rows], [row.key for row in rows]
    cursor.execute(ADOPT, [kinds, keys, [every_ms[row.kind, row.key] for row in rows]])


def drop(cursor: Any, hosted: Sequence[str], rows: Sequence[WorkRow]) -> None:
    """Have keys of the ``hosted`` kinds come back no more that neither ``rows`` nor a live member declares."""
    cursor.execute(
        DROP,
        {"hosted": list(hosted), "kinds": [row.kind for row in rows], "keys": [row.key for row in rows]},
    )
