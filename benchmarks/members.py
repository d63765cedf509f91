"""Worker processes that join, leave, die and are lost, timed by the database's clock alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from django.db import connection

from benchmarks import queue
from benchmarks.queue import wait_until
from benchmarks.settings import THREADS_VARIABLE
from better_compute.engine.shards import SHARDS

#: Longest that a process may take to import, connect and join, in seconds.
START = 120.0
KEYS = 100_000
PROCESSES = 20


def ask(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def shards_of(pid: int) -> int:
    """How many shards the process holds."""
    held = ask(
        "SELECT count(*) FROM compute_leases lease JOIN compute_workers member ON member.id = lease.holder "
        "WHERE member.pid = %s AND lease.name LIKE 'shard:%%'",
        pid,
    )
    return int(held[0][0])


class Members:
    """The process of the benchmark, which holds every shard, and others that come and go."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._left: list[float] = []

    def start(self, *, threads: int = 4) -> subprocess.Popen[bytes]:
        """Start another process, with so many handler threads."""
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.member"],
            env={**os.environ, THREADS_VARIABLE: str(threads)},
            stdout=subprocess.DEVNULL,
        )
        self._processes.append(process)
        return process

    def joined(self) -> subprocess.Popen[bytes]:
        """Start another process and wait until every shard is with the one or the other."""
        process = self.start()
        wait_until(
            lambda: shards_of(process.pid) >= SHARDS // 3 and shards_of(process.pid) + shards_of(os.getpid()) == SHARDS,
            "the second process has not got its shards",
            seconds=START,
            pause=0.05,
        )
        return process

    def end(self) -> None:
        """Kill what is left."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def join(self) -> float:
        """Seconds from the registration of a second process until it has the last of its shards."""
        process = self.joined()
        [(seconds,)] = ask(
            "SELECT EXTRACT(EPOCH FROM max(lease.acquired_at) - max(member.started_at)) FROM compute_leases lease "
            "JOIN compute_workers member ON member.id = lease.holder WHERE member.pid = %s",
            process.pid,
        )
        self._left.append(self._gone(process, process.terminate))
        return float(seconds)

    def leave(self) -> float:
        """Seconds from SIGTERM until every shard of a process is with the other: of one that joined before."""
        if not self._left:
            self.join()
        return self._left.pop(0)

    def die(self) -> float:
        """The same from ``kill -9``."""
        process = self.joined()
        return self._gone(process, process.kill)

    def vanish(self) -> float:
        """The same for a process that is stopped with its connections open, as when its host is lost."""
        process = self.joined()
        try:
            return self._gone(process, lambda: process.send_signal(signal.SIGSTOP))
        finally:
            process.kill()

    def _gone(self, process: subprocess.Popen[bytes], end: Callable[[], None]) -> float:
        [(began,)] = ask("SELECT compute_now()")
        end()
        wait_until(lambda: shards_of(os.getpid()) == SHARDS, "the shards did not come back", pause=0.05)
        [(seconds,)] = ask(
            "SELECT EXTRACT(EPOCH FROM max(acquired_at) - %s) FROM compute_leases WHERE name LIKE 'shard:%%'", began
        )
        return float(seconds)

    def spread(self) -> float:
        """How much more than an even share of :data:`KEYS` keys the busiest of :data:`PROCESSES` members ran."""
        while 1 + sum(process.poll() is None for process in self._processes) < PROCESSES:
            # A server takes some hundred connections, and each thread may hold one.
            self.start(threads=1)
        wait_until(lambda: holders() == PROCESSES, "not every process holds shards", seconds=600, pause=0.5)
        ask("DELETE FROM bench_spread RETURNING 1")
        before = deadlocks()
        serial = uuid4().hex
        queue.enqueue("bench.spread", [f"{serial}-{number}" for number in range(KEYS)])
        wait_until(lambda: queue.drained("bench.spread"), "keys are left", seconds=600, pause=0.5)
        assert deadlocks() == before, f"{deadlocks() - before} deadlocks"
        ran = [int(keys) for (keys,) in ask("SELECT sum(keys) FROM bench_spread GROUP BY holder")]
        assert sum(ran) >= KEYS, f"{sum(ran)} of {KEYS} keys were run"
        return max(ran) * PROCESSES / sum(ran)


def holders() -> int:
    """How many members hold shards."""
    return int(ask("SELECT count(DISTINCT holder) FROM compute_leases WHERE name LIKE 'shard:%%'")[0][0])


def deadlocks() -> int:
    """How many there have been in this database."""
    return int(ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0])


@contextmanager
def members() -> Iterator[Members]:
    """Processes that end with the measurement."""
    running = Members()
    try:
        yield running
    finally:
        running.end()
