"""What a claim costs beside rows that are not due, and while an old snapshot keeps PostgreSQL from tidying up."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connection

from benchmarks import queue
from benchmarks.peers.bare_psycopg import QUEUE, Holder
from better_compute.engine import turns
from better_compute.engine.runtime import Runtime
from better_compute.engine.shards import SHARDS
from better_compute.store import passes
from better_compute.store.claims import NO_FLOOR, Look
from better_compute.store.session import connect

PARKED = 100_000
CLAIMS = 200
#: Keys a second, and how often they are committed, while xmin is held.
RATE = 1_000
EVERY = 0.05

_serial = itertools.count()


class Pair:
    """Claims of 100 due keys on 256 shards from two tables in turn: one with parked keys, one without."""

    def __init__(self, holding: Holder) -> None:
        self._holding = holding
        self._kept: dict[str, float] = {}

    def p50(self, table: str) -> float:
        """Microseconds of the middle claim from ``parked`` or ``empty``; both are measured together, claim by claim."""
        if table not in self._kept:
            self._kept = self._measure()
        return self._kept.pop(table)

    def _measure(self) -> dict[str, float]:
        taken: dict[str, list[float]] = {"parked": [], "empty": []}
        with connection.cursor() as cursor:
            for table in taken:
                cursor.execute(f"CREATE SCHEMA {table}")
                cursor.execute(f"CREATE TABLE {table}.compute_work (LIKE public.compute_work INCLUDING ALL)")
                cursor.execute(
                    f"INSERT INTO {table}.compute_work (kind, key, shard, not_before, enqueued_at) "
                    "SELECT 'bench.parked', 'k' || n, n %% %s, compute_now() + CASE WHEN n <= 100 THEN interval '0' "
                    "ELSE interval '1 day' END, compute_now() FROM generate_series(1, %s) n",
                    [SHARDS, 100 + PARKED * (table == "parked")],
                )
                cursor.execute(f"VACUUM (ANALYZE) {table}.compute_work")
        look = Look("bench.parked", range(SHARDS), [NO_FLOOR] * SHARDS, (), 100, 13)
        with ExitStack() as stack:
            sessions = {table: stack.enter_context(connect("default", "bench-claims", QUEUE)) for table in taken}
            for table, session in sessions.items():
                session.execute(f"SET search_path TO {table}, public")
            for _ in range(CLAIMS):
                for table, session in sessions.items():
                    began = time.perf_counter()
                    found = passes.claim_noted(session.cursor(), self._holding.member, look, [])
                    taken[table].append((time.perf_counter() - began) * 1e6)
                    assert len(found.claimed) == 100, f"{len(found.claimed)} of 100 due keys were claimed"
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA parked, empty CASCADE")
        return {table: statistics.median(times) for table, times in taken.items()}


@contextmanager
def timed() -> Iterator[list[float]]:
    """Milliseconds of every pass that the runtime of this process makes meanwhile."""
    taken: list[float] = []

    def watched(measured: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            began = time.perf_counter()
            found = measured(*args)
            taken.append((time.perf_counter() - began) * 1_000)
            return found

        return run

    original = vars(turns)["passes"]

    class Watched:
        claim_noted = staticmethod(watched(passes.claim_noted))
        finish_and_claim = staticmethod(watched(passes.finish_and_claim))

    vars(turns)["passes"] = Watched
    try:
        yield taken
    finally:
        vars(turns)["passes"] = original


def held_back(runtime: Runtime, seconds: float) -> float:
    """The middle pass in milliseconds, of the last quarter of ``seconds`` under a snapshot held all the while.

    :data:`RATE` keys a second are committed and run meanwhile, and every one of them leaves a dead row.
    """
    with connect("default", "bench-snapshot", {}) as old:
        old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        old.execute("SELECT count(*) FROM compute_work")
        with timed() as taken:
            _enqueue_at_rate(runtime, seconds * 0.75)
            since = len(taken)
            _enqueue_at_rate(runtime, seconds * 0.25)
            last = taken[since:]
        old.execute("ROLLBACK")
    queue.wait_until(lambda: queue.drained("bench.sharded"), "keys are left")
    return statistics.median(last)


def _enqueue_at_rate(runtime: Runtime, seconds: float) -> None:
    serial, began, written = next(_serial), time.monotonic(), 0
    while time.monotonic() - began < seconds:
        wanted = int(min(time.monotonic() - began, seconds) * RATE)
        names: Sequence[str] = [f"held-{serial}-{number}" for number in range(written, wanted)]
        if names:
            queue.enqueue("bench.sharded", names)
            runtime.wake([("bench.sharded", 0)])
        written = max(written, wanted)
        time.sleep(EVERY)
