"""The engine beside bare psycopg, PgQueuer and Celery."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from django.core.management import call_command
from django.db import connection

from benchmarks import claims, enqueue, members, queue
from benchmarks.bars import STATED
from benchmarks.harness import Contest, Figure, Group
from benchmarks.peers import bare_psycopg, celery_per_key, pgqueuer
from benchmarks.peers.bare_psycopg import Holder
from better_compute.engine.dispatch import CHEAP_BATCHES
from better_compute.engine.runtime import Runtime
from better_compute.store.claims import Claimed

KEYS = 6_000
WRITES = 400
BATCHED = 3_000
JOBS = 1_000
TASKS = 200
TRANSACTIONS = 10
COMMITS = 50
HOT_SECONDS = 1.0
ENGINE = "runtime of one process, default settings (4 threads, batch 100), real leases, heartbeat and LISTEN"

Handle = Callable[[Holder, Sequence[Claimed]], None]


@contextmanager
def prepared(*, full: bool) -> Iterator[Group]:
    """Migrate, start the runtime of one process and a Celery worker, and hold a lease for the bare loop."""
    scale = 5 if full else 1
    call_command("compute_migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_rows (key text PRIMARY KEY, runs integer NOT NULL DEFAULT 0)")
        cursor.execute("CREATE TABLE bench_spread (holder text NOT NULL, keys integer NOT NULL)")
        for kind in ("bench.write-each", "bench.write-many", "bare.no-op"):
            cursor.execute(
                "INSERT INTO bench_rows (key) SELECT %s || '-' || to_char(n, 'FM000000') FROM generate_series(0, %s) n",
                [kind, max(KEYS, WRITES, BATCHED) * scale],
            )
    with ExitStack() as stack:
        runtime = stack.enter_context(queue.running_engine())
        bare = stack.enter_context(bare_psycopg.holder("bare.no-op"))
        celery = stack.enter_context(celery_per_key.worker())
        others = stack.enter_context(members.members())
        yield Group(
            [
                *drains(runtime, bare, celery, scale),
                *writes(runtime, bare, scale),
                *enqueues(scale),
                *latencies(scale),
                *scans(runtime, bare, full=full),
                *movements(others, full=full),
            ]
        )


def drains(runtime: Runtime, bare: Holder, celery: celery_per_key.Worker, scale: int) -> list[Figure]:
    """A handler that does nothing."""
    contest = Contest(
        "no-op drain",
        "keys/s",
        {
            "ours": ours(runtime, "bench.no-op", KEYS * scale),
            "bare psycopg": beside(bare, KEYS * scale),
            "bare psycopg, batch 500": beside(bare, KEYS * scale, batch=bare_psycopg.BATCH * CHEAP_BATCHES),
            "PgQueuer": lambda: pgqueuer.drain(JOBS * scale),
            "Celery": lambda: celery.drain(TASKS * scale),
        },
        configuration={
            "ours": f"{ENGINE}, which takes 500 keys of a kind this cheap; not sharded, no-op handler",
            "bare psycopg": bare_psycopg.CONFIGURATION,
            "bare psycopg, batch 500": "the same with as many keys a claim as ours takes",
            "PgQueuer": pgqueuer.CONFIGURATION,
            "Celery": celery_per_key.CONFIGURATION,
        },
    )
    return [
        Figure("work: no-op drain, one process", contest, "bare psycopg", ">= 0.7 x"),
        Figure("work: no-op drain beside bare psycopg at our batch", contest, "bare psycopg, batch 500", STATED),
        Figure("work: no-op drain beside PgQueuer", contest, "PgQueuer", ">= 4 x", note="Its jobs carry more."),
        Figure("work: no-op drain beside Celery", contest, "Celery", ">= 50 x", note="Its tasks carry more."),
    ]


def writes(runtime: Runtime, bare: Holder, scale: int) -> list[Figure]:
    """Handlers that write one row for each key."""
    many = Contest(
        "run_many with one written row per key",
        "keys/s",
        {
            "ours": ours(runtime, "bench.write-many", BATCHED * scale),
            "bare psycopg": beside(bare, BATCHED * scale, bare_psycopg.write_many),
        },
        configuration={
            "ours": f"{ENGINE}; run_many: one fenced ctx.sql.transaction with one UPDATE for the batch",
            "bare psycopg": "one thread: claim, BEGIN, fence, the same UPDATE, COMMIT, finish",
        },
    )
    each = Contest(
        "one fenced Django transaction per key with one write",
        "keys/s",
        {
            "ours": ours(runtime, "bench.write-each", WRITES * scale),
            "bare psycopg": beside(bare, WRITES * scale, bare_psycopg.write_each),
            "bare psycopg, no fence": beside(bare, WRITES * scale, bare_psycopg.write_each_unfenced),
        },
        configuration={
            "ours": f"{ENGINE}; run: ctx.sql.transaction with one UPDATE through Django's cursor",
            "bare psycopg": "four threads: claim 100; for each key BEGIN, fence, the same UPDATE, COMMIT; finish",
            "bare psycopg, no fence": "the same without the fence: what the fence costs",
        },
    )
    return [
        Figure("work: run_many with one written row per key", many, "bare psycopg", ">= 0.6 x"),
        Figure("work: fenced transaction per key with one write", each, "bare psycopg", ">= 0.65 x"),
        Figure(
            "work: what the fence leaves of a transaction's rate",
            each,
            "bare psycopg, no fence",
            ">= 0.65 x",
            of="bare psycopg",
            note="A fence that costs 35 % of the transaction leaves 0.65 of the rate.",
        ),
    ]


def enqueues(scale: int) -> list[Figure]:
    """Bulk and hot."""

    def clean(measure: Callable[[int], float]) -> Callable[[], float]:
        def run() -> float:
            enqueue.forget()
            return measure(TRANSACTIONS * scale)

        return run

    bulk = Contest(
        "bulk enqueue, 1,000 per transaction",
        "keys/s",
        {"ours": clean(enqueue.bulk_ours), "bare SQL": clean(enqueue.bulk_bare)},
        configuration={
            "ours": "ctx.work.enqueue_many in our transaction, new keys, one connection",
            "bare SQL": "psycopg: BEGIN, the same upsert with sorted arrays, COMMIT",
        },
    )
    hot = Contest(
        "hot key from 8 writers in 10 ms transactions",
        "transactions/s",
        {
            "ours": lambda: enqueue.hot_key(HOT_SECONDS, enqueue_first=False),
            "enqueued first": lambda: enqueue.hot_key(HOT_SECONDS, enqueue_first=True),
            "a key of each writer": lambda: enqueue.hot_key(HOT_SECONDS, enqueue_first=False, shared=False),
        },
        configuration={
            "ours": "ctx.work.enqueue anywhere in the transaction; written right before COMMIT",
            "enqueued first": "the same upsert written at the start of the transaction",
            "a key of each writer": "as ours, but nobody waits for anybody: the most that any design could reach here",
        },
    )
    return [
        Figure("work: bulk enqueue beside bare SQL", bulk, "bare SQL", ">= 0.8 x", note="Or 30,000 keys/s, whichever."),
        Figure("work: hot key from 8 writers", hot, "enqueued first", ">= 10 x"),
    ]


def latencies(scale: int) -> list[Figure]:
    """From commit to the start of the run, in one process with LISTEN and its own wake-up."""

    def percentile(share: float) -> Callable[[], float]:
        def measure() -> float:
            taken = sorted(enqueue.commit_to_start(COMMITS * scale))
            return taken[min(len(taken) - 1, round(share * len(taken)))]

        return measure

    configuration = {"ours": f"{ENGINE}; one enqueue a transaction, every 20 ms, committed in the worker's process"}
    middle = Contest("commit to start of run, p50", "ms", {"ours": percentile(0.50)}, configuration=configuration)
    late = Contest("commit to start of run, p99", "ms", {"ours": percentile(0.99)}, configuration=configuration)
    unheard = Contest(
        "commit to start of run, unheard",
        "ms",
        {"ours": lambda: enqueue.unheard_to_start(5)},
        configuration={
            "ours": f"{ENGINE}; the key is written by SQL alone, so that only a poll finds it; longest of 5"
        },
    )
    return [
        Figure("work: commit to start of run, p50", middle, None, "<= 15 ms"),
        Figure("work: commit to start of run, p99", late, None, "<= 100 ms"),
        Figure("work: commit to start of run, broker and LISTEN off", unheard, None, "<= 1,300 ms"),
    ]


def scans(runtime: Runtime, bare: Holder, *, full: bool) -> list[Figure]:
    """What a claim has to pass over."""
    pair = claims.Pair(bare)
    parked = Contest(
        "claim p50 of 100 due keys on 256 shards",
        "us",
        {
            "ours": lambda: pair.p50("parked"),
            "nothing parked": lambda: pair.p50("empty"),
        },
        configuration={
            "ours": "100,000 keys of the kind on the same shards are due tomorrow; claims from both tables in turn"
        },
    )
    figures = [Figure("work: claim beside 100,000 parked keys", parked, "nothing parked", "<= 1.2 x")]
    if full:
        held = Contest(
            "claim while xmin is held",
            "ms",
            {"ours": lambda: claims.held_back(runtime, 120)},
            warm_up=0,
            configuration={
                "ours": "2 minutes of 1,000 keys/s over 256 shards under an old snapshot; p50 of the last 30 s"
            },
        )
        figures.append(Figure("work: claim p50 while xmin is held for 2 minutes", held, None, "<= 10 ms"))
    return figures


def movements(others: members.Members, *, full: bool) -> list[Figure]:
    """Shards that change hands, in seconds of the database's clock, with the default TTL of 10 s and tick of 2 s."""

    def figure(name: str, measure: Callable[[], float], bar: str) -> Figure:
        contest = Contest(
            name, "s", {"ours": measure}, warm_up=0, configuration={"ours": "two processes share 256 shards"}
        )
        return Figure(f"work: {name}", contest, None, bar)

    figures = [
        figure("join", others.join, "<= 2 s"),
        figure("graceful leave", others.leave, "<= 0.5 s"),
    ]
    if full:
        figures += [figure("kill -9", others.die, "<= 3 s"), figure("host lost", others.vanish, "<= 11 s")]
        spread = Contest(
            "busiest of 20 members",
            "of even",
            {"ours": others.spread},
            configuration={"ours": "100,000 keys, run_many, one handler thread a process"},
        )
        figures.append(Figure("work: 100,000 keys over 20 processes", spread, None, "<= 1.25 of even"))
    return figures


def ours(runtime: Runtime, kind: str, keys: int) -> Callable[[], float]:
    """A measure of the runtime draining ``keys`` keys of ``kind``."""
    return lambda: queue.drain(runtime, kind, keys)


def beside(
    bare: Holder, keys: int, handle: Handle = lambda holder, claims: None, batch: int = bare_psycopg.BATCH
) -> Callable[[], float]:
    """A measure of the bare loop draining as many keys."""

    def measure() -> float:
        queue.fill(bare.kind, keys)
        began = time.perf_counter()
        drained = bare.drain(handle, batch)
        assert drained == keys, f"the bare loop drained {drained} of {keys} keys"
        return drained / (time.perf_counter() - began)

    return measure
