"""A loop that knows nothing of reconcilers: psycopg and the engine's own statements for claim, fence and finish."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from better_compute.engine.shards import UNSHARDED
from better_compute.store import claims, ends, fence, leases
from better_compute.store.claims import Claimed
from better_compute.store.ends import Ended
from better_compute.store.session import connect

BATCH = 100
#: As many as our runtime has by default.
THREADS = 4
#: The session settings of the engine's own connection for the queue.
QUEUE = {
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "synchronous_commit": "off",
}
CONFIGURATION = (
    "psycopg 3, one thread, the same CLAIM and FINISH_DONE under one lease, batch 100, prepared, generic plans, "
    "synchronous_commit=off, no handler and no runtime"
)


@dataclass(frozen=True, slots=True)
class Holder:
    """A member of our own that holds one singleton lease."""

    queue: psycopg.Connection[Any]
    handlers: Sequence[psycopg.Connection[Any]]
    threads: ThreadPoolExecutor
    member: str
    lease: str
    epoch: int
    kind: str

    def claim(self, cursor: Any, limit: int = BATCH) -> list[Claimed]:
        """Due keys of the kind."""
        return claims.claim(cursor, self.kind, [UNSHARDED], running=[], limit=limit, per_shard=limit)

    def finish(self, cursor: Any, claims: Sequence[Claimed]) -> None:
        """Delete them under the lease."""
        ends.finish_done(cursor, self.member, self.kind, [Ended(claimed, self.lease, self.epoch) for claimed in claims])

    def drain(
        self, handle: Callable[[Holder, Sequence[Claimed]], None] = lambda holder, claims: None, batch: int = BATCH
    ) -> int:
        """Claim, handle, finish until nothing is due; how many keys that were."""
        drained = 0
        with self.queue.cursor() as cursor:
            while claims := self.claim(cursor, batch):
                handle(self, claims)
                self.finish(cursor, claims)
                drained += len(claims)
        return drained


@contextmanager
def holder(kind: str) -> Iterator[Holder]:
    """Register a member that stays for a day, take ``singleton:<kind>``, and close its connections after it."""
    member, lease = str(uuid.uuid4()), f"singleton:{kind}"
    with ExitStack() as stack:
        queue = stack.enter_context(connect("default", "bench-queue", QUEUE))
        handlers = [stack.enter_context(connect("default", "bench-handler", {})) for _ in range(THREADS)]
        threads = stack.enter_context(ThreadPoolExecutor(THREADS))
        with queue.cursor() as cursor:
            cursor.execute(
                "INSERT INTO compute_workers (id, role, host, pid, started_at, expires_at) "
                "VALUES (%s, 'controllers', 'bench', 0, compute_now(), compute_now() + interval '1 day')",
                [member],
            )
            cursor.execute(leases.ENSURE_LEASES, [[lease]])
            cursor.execute(leases.ACQUIRE, {"names": [lease], "id": member})
            epoch = cursor.fetchall()[0][1]
        yield Holder(queue, handlers, threads, member, lease, epoch, kind)


WRITE = "UPDATE bench_rows SET runs = runs + 1 WHERE key = %s"
WRITE_MANY = "UPDATE bench_rows SET runs = runs + 1 WHERE key = ANY(%s)"


def write_each(holding: Holder, claims: Sequence[Claimed]) -> None:
    """One fenced transaction with one write for each key, on as many threads as our runtime has."""
    _each(holding, claims, fenced=True)


def write_each_unfenced(holding: Holder, claims: Sequence[Claimed]) -> None:
    """The same without the fence: what is left is what the fence costs."""
    _each(holding, claims, fenced=False)


def _each(holding: Holder, claims: Sequence[Claimed], *, fenced: bool) -> None:
    def work_through(part: tuple[psycopg.Connection[Any], Sequence[Claimed]]) -> None:
        handler, keys = part
        for claimed in keys:
            with handler.transaction(), handler.cursor() as cursor:
                if fenced:
                    cursor.execute(fence.ONE, [holding.lease, holding.member, holding.epoch])
                    cursor.fetchall()
                cursor.execute(WRITE, [claimed.key])

    parts = [(handler, claims[number :: len(holding.handlers)]) for number, handler in enumerate(holding.handlers)]
    list(holding.threads.map(work_through, parts))


def write_many(holding: Holder, claims: Sequence[Claimed]) -> None:
    """One fenced transaction with one statement for all keys."""
    handler = holding.handlers[0]
    with handler.transaction(), handler.cursor() as cursor:
        cursor.execute(fence.ONE, [holding.lease, holding.member, holding.epoch])
        cursor.fetchall()
        cursor.execute(WRITE_MANY, [[claimed.key for claimed in claims]])
