"""The engine beside bare psycopg, PgQueuer and Celery."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.core.management import call_command
from django.db import connection

from benchmarks import queue
from benchmarks.harness import Contest, Figure, Group
from benchmarks.peers import bare_psycopg, celery_per_key, pgqueuer

KEYS = 10_000
JOBS = 2_000
TASKS = 500
OURS = "Runtime of one process, default settings (4 threads, batch 100), real leases, heartbeat and LISTEN; "


@contextmanager
def prepared(*, full: bool) -> Iterator[Group]:
    """Migrate, start the runtime of one process and a Celery worker, and hold a lease for the bare loop."""
    scale = 5 if full else 1
    call_command("compute_migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bench_rows (key text PRIMARY KEY, runs integer NOT NULL DEFAULT 0)")
    with ExitStack() as stack:
        runtime = stack.enter_context(queue.running_engine())
        bare = stack.enter_context(bare_psycopg.holder("bare.no-op"))
        celery = stack.enter_context(celery_per_key.worker())

        def bare_drain() -> float:
            queue.fill(bare.kind, KEYS * scale)
            began = time.perf_counter()
            drained = bare.drain()
            assert drained == KEYS * scale, drained
            return drained / (time.perf_counter() - began)

        no_op = Contest(
            "no-op drain",
            "keys/s",
            {
                "ours": lambda: queue.drain(runtime, "bench.no-op", KEYS * scale),
                "bare psycopg": bare_drain,
                "PgQueuer": lambda: pgqueuer.drain(JOBS * scale),
                "Celery": lambda: celery.drain(TASKS * scale),
            },
            rounds=7,
            configuration={
                "ours": OURS + "not sharded, no-op handler",
                "bare psycopg": bare_psycopg.CONFIGURATION,
                "PgQueuer": pgqueuer.CONFIGURATION,
                "Celery": celery_per_key.CONFIGURATION,
            },
        )
        yield Group(
            [
                Figure("work: no-op drain, one process", no_op, "bare psycopg", ">= 0.7 x"),
                Figure("work: no-op drain beside PgQueuer", no_op, "PgQueuer", ">= 4 x", note="Its jobs carry more."),
                Figure("work: no-op drain beside Celery", no_op, "Celery", ">= 50 x", note="Its tasks carry more."),
            ]
        )
