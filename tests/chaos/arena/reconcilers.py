"""Runs that leave evidence: what they saw, and from when to when they were inside their fenced transaction.

``visits`` is read when a run enters and written, one higher, before it commits. Two runs of a key that are inside
at once read the same number, so one visit is missing afterwards, however short the overlap was.
"""

import os
import secrets
import time
from collections.abc import Mapping, Sequence

from better_compute import DONE, SYNC_AGAIN, BatchReconciler, Outcome, ReconcileContext, Reconciler
from better_compute.contract.errors import LeaseLost

LOOK = """
SELECT wanted.key, wanted.want, visited.visits, clock_timestamp() AS entered_at
FROM arena_wants wanted JOIN arena_visits visited USING (kind, key)
WHERE kind = %s AND key = ANY(%s) ORDER BY key
"""
LEAVE = """
WITH visited AS (
  UPDATE arena_visits AS visited SET visits = saw.visits + 1
  FROM unnest(%s::text[], %s::bigint[]) AS saw (key, visits)
  WHERE visited.kind = %s AND visited.key = saw.key
)
INSERT INTO arena_runs (kind, key, saw, entered_at, left_at, pid, lease, epoch)
SELECT %s, key, want, %s, clock_timestamp(), %s, %s, %s
FROM unnest(%s::text[], %s::bigint[]) AS ran (key, want)
"""

TTL_SECONDS = int(os.environ.get("CHAOS_TTL_MS", "3000")) / 1_000
_lots = secrets.SystemRandom()
#: What the harness counts in a worker's log.
REFUSED = "arena: the fence refused"


def visit(ctx: ReconcileContext, kind: str, keys: Sequence[str], lease: str | None) -> None:
    """Be inside a fenced transaction for a while, and record it."""
    if _lots.random() < 0.5:
        # Between the claim and the fence: where a process that slept past its lease is refused.
        time.sleep(_lots.uniform(0.05, 0.3))
    try:
        with ctx.sql.transaction():
            rows = ctx.sql.query(LOOK, [kind, list(keys)]).rows
            _linger(ctx)
            found, wants = [row["key"] for row in rows], [row["want"] for row in rows]
            ctx.sql.query(
                LEAVE,
                [
                    *(found, [row["visits"] for row in rows], kind),
                    *(kind, rows[0]["entered_at"], os.getpid(), lease, ctx.lease.epoch if lease else None),
                    *(found, wants),
                ],
            )
    except LeaseLost:
        print(REFUSED, kind, *keys, flush=True)
        raise


def _linger(ctx: ReconcileContext) -> None:
    chance = _lots.random()
    if chance < 0.02:
        # In the server, so that no timeout for idle transactions ends it while the process is stopped.
        ctx.sql.query("SELECT pg_sleep(%s)", [_lots.uniform(1.0, 2.0) * TTL_SECONDS])
    elif chance < 0.5:
        time.sleep(_lots.uniform(0.05, 0.3))
    else:
        time.sleep(_lots.uniform(0.0, 0.01))


def _settle(key: str) -> Outcome:
    chance = _lots.random()
    if chance < 0.1:
        # Between the run's commit and its finish: where a stale finish comes from.
        time.sleep(_lots.uniform(0.0, 0.1))
    elif chance < 0.12:
        raise ValueError(f"no luck with {key}")
    elif chance < 0.5:
        # Keeps the threads busy, so that whatever happens to a process happens to runs.
        return SYNC_AGAIN
    return DONE


class Nodes(Reconciler):
    name, shard_by = "arena.nodes", "node"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        visit(ctx, self.name, [key], ctx.lease.name)
        return _settle(key)


class Single(Reconciler):
    name = "arena.single"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        visit(ctx, self.name, [key], ctx.lease.name)
        return _settle(key)


class Many(BatchReconciler):
    """Its runs stand under several leases at once, of which the context names one."""

    name, shard_by = "arena.many", "pool"

    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        visit(ctx, self.name, keys, None)
        return {key: SYNC_AGAIN for key in keys if _lots.random() < 0.4}
