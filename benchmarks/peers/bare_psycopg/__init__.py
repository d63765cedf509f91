"""A loop that knows nothing of reconcilers: psycopg and the engine's own statements for claim, fence and finish."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from better_compute.engine.shards import UNSHARDED
from better_compute.store import leases, work
from better_compute.store.session import connect
from better_compute.store.work import Claimed, Ended

BATCH = 100
#: The session settings of the engine's own connection for the queue.
QUEUE = {"enable_seqscan": "off", "plan_cache_mode": "force_generic_plan", "synchronous_commit": "off"}
CONFIGURATION = (
    "psycopg 3, one thread, the same CLAIM and FINISH_DONE under one lease, batch 100, prepared, generic plans, "
    "synchronous_commit=off, no handler and no runtime"
)


@dataclass(frozen=True, slots=True)
class Holder:
    """A member of our own that holds one singleton lease."""

    queue: psycopg.Connection[Any]
    handler: psycopg.Connection[Any]
    member: str
    lease: str
    epoch: int
    kind: str

    def claim(self, cursor: Any, limit: int = BATCH) -> list[Claimed]:
        """Due keys of the kind."""
        return work.claim(cursor, self.kind, [UNSHARDED], running=[], limit=limit, per_shard=limit)

    def finish(self, cursor: Any, claims: Sequence[Claimed]) -> None:
        """Delete them under the lease."""
        work.finish_done(cursor, self.member, self.kind, [Ended(claimed, self.lease, self.epoch) for claimed in claims])

    def drain(self, handle: Callable[[Holder, Sequence[Claimed]], None] = lambda holder, claims: None) -> int:
        """Claim, handle, finish until nothing is due; how many keys that were."""
        drained = 0
        with self.queue.cursor() as cursor:
            while claims := self.claim(cursor):
                handle(self, claims)
                self.finish(cursor, claims)
                drained += len(claims)
        return drained


@contextmanager
def holder(kind: str) -> Iterator[Holder]:
    """Register a member that stays for a day, take ``singleton:<kind>``, and close both connections after it."""
    member, lease = str(uuid.uuid4()), f"singleton:{kind}"
    with connect("default", "bench-queue", QUEUE) as queue, connect("default", "bench-handler", {}) as handler:
        with queue.cursor() as cursor:
            cursor.execute(
                "INSERT INTO compute_workers (id, role, host, pid, started_at, expires_at) "
                "VALUES (%s, 'controllers', 'bench', 0, compute_now(), compute_now() + interval '1 day')",
                [member],
            )
            cursor.execute(leases.ENSURE_LEASES, [[lease]])
            cursor.execute(leases.ACQUIRE, {"names": [lease], "id": member})
            epoch = cursor.fetchall()[0][1]
        yield Holder(queue, handler, member, lease, epoch, kind)


FENCE_AND_WRITE = "UPDATE bench_rows SET runs = runs + 1 WHERE key = %s"
WRITE_MANY = "UPDATE bench_rows SET runs = runs + 1 WHERE key = ANY(%s)"


def write_each(holding: Holder, claims: Sequence[Claimed]) -> None:
    """One fenced transaction with one write for each key."""
    for claimed in claims:
        with holding.handler.transaction(), holding.handler.cursor() as cursor:
            cursor.execute(leases.FENCE, [holding.lease, holding.member, holding.epoch])
            cursor.fetchall()
            cursor.execute(FENCE_AND_WRITE, [claimed.key])


def write_each_unfenced(holding: Holder, claims: Sequence[Claimed]) -> None:
    """The same without the fence: what is left is what the fence costs."""
    for claimed in claims:
        with holding.handler.transaction(), holding.handler.cursor() as cursor:
            cursor.execute(FENCE_AND_WRITE, [claimed.key])


def write_many(holding: Holder, claims: Sequence[Claimed]) -> None:
    """One fenced transaction with one statement for all keys."""
    with holding.handler.transaction(), holding.handler.cursor() as cursor:
        cursor.execute(leases.FENCE, [holding.lease, holding.member, holding.epoch])
        cursor.fetchall()
        cursor.execute(WRITE_MANY, [[claimed.key for claimed in claims]])
