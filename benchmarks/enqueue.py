"""Enqueues as callers make them: in bulk, and on one hot key from many writers."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import connection

from benchmarks.reconcilers import Timed
from better_compute.engine.contexts import WorkPort
from better_compute.store import transaction, work

#: Far enough ahead that no worker claims them while enqueueing is measured.
LATER = timedelta(hours=1)
PER_TRANSACTION = 1_000
WRITERS = 8
#: What a writer does besides enqueueing, in seconds.
OTHER_WORK = 0.010

_serial = itertools.count()


def bulk_ours(transactions: int) -> float:
    """Keys a second of ``ctx.work.enqueue_many`` with 1,000 new keys in each transaction."""
    port, serial = WorkPort(), next(_serial)
    keys = [[f"{serial}-{batch}-{number}" for number in range(PER_TRANSACTION)] for batch in range(transactions)]
    began = time.perf_counter()
    for batch in keys:
        with transaction.transaction():
            port.enqueue_many("bench.no-op", batch, delay=LATER)
    return transactions * PER_TRANSACTION / (time.perf_counter() - began)


def bulk_bare(transactions: int) -> float:
    """The same rows with psycopg and the same statement, in BEGIN and COMMIT."""
    serial = next(_serial)
    keys = [[f"{serial}-{batch}-{number}" for number in range(PER_TRANSACTION)] for batch in range(transactions)]
    session = connection.connection
    began = time.perf_counter()
    for batch in keys:
        count = len(batch)
        with session.transaction(), session.cursor() as cursor:
            cursor.execute(work.UPSERT, [["bench.no-op"] * count, sorted(batch), [-1] * count, [3_600_000] * count])
    return transactions * PER_TRANSACTION / (time.perf_counter() - began)


def forget() -> None:
    """Empty the table of what was enqueued, so that each round meets the same."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM compute_work WHERE kind LIKE 'bench.%'")


def hot_key(seconds: float, *, enqueue_first: bool, shared: bool = True) -> float:
    """Transactions a second of 8 writers that all enqueue one key and work 10 ms in the same transaction.

    Not ``shared``, each has a key of its own.
    """
    done = [0] * WRITERS
    barrier = threading.Barrier(WRITERS + 1)
    stop = threading.Event()
    write: Callable[[str], None] = _enqueue_at_once if enqueue_first else _enqueue

    def writer(number: int) -> None:
        try:
            connection.ensure_connection()
            barrier.wait()
            while not stop.is_set():
                with transaction.transaction():
                    write("hot" if shared else f"hot-{number}")
                    time.sleep(OTHER_WORK)
                done[number] += 1
        finally:
            connection.close()

    threads = [threading.Thread(target=writer, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    time.sleep(seconds)
    counted, took = sum(done), time.perf_counter() - began
    stop.set()
    for thread in threads:
        thread.join()
    return counted / took


def _enqueue(key: str) -> None:
    WorkPort().enqueue("bench.no-op", key, delay=LATER)


def _enqueue_at_once(key: str) -> None:
    with connection.cursor() as cursor:
        work.upsert(cursor, [work.WorkRow("bench.no-op", key, -1, 3_600_000)])


def commit_to_start(commits: int) -> list[float]:
    """Milliseconds from the return of COMMIT to the start of the run, for each of ``commits`` single enqueues."""
    port, serial = WorkPort(), next(_serial)
    committed: dict[str, float] = {}
    for number in range(commits):
        key = f"{serial}-{number}"
        with transaction.transaction():
            port.enqueue("bench.timed", key)
        committed[key] = time.perf_counter()
        time.sleep(0.02)
    deadline = time.monotonic() + 30
    while not committed.keys() <= Timed.started.keys():
        assert time.monotonic() < deadline, "a committed key did not start within 30 s"
        time.sleep(0.01)
    # A run may start before COMMIT returns to its caller; it then took no time.
    return [max(0.0, Timed.started[key] - moment) * 1_000 for key, moment in committed.items()]


def unheard_to_start(commits: int) -> float:
    """The longest that one of ``commits`` keys waits for its run when nobody tells the worker, in milliseconds."""
    serial = next(_serial)
    committed: dict[str, float] = {}
    for number in range(commits):
        key = f"unheard-{serial}-{number}"
        with connection.cursor() as cursor:
            work.upsert(cursor, [work.WorkRow("bench.timed", key, -1)])
        committed[key] = time.perf_counter()
        time.sleep(0.2)
    deadline = time.monotonic() + 30
    while not committed.keys() <= Timed.started.keys():
        assert time.monotonic() < deadline, "a committed key did not start within 30 s"
        time.sleep(0.01)
    return max(Timed.started[key] - moment for key, moment in committed.items()) * 1_000
