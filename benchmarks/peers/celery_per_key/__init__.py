"""Celery with one task for each key, as most Django projects would write it.

Its contract differs: any task with any arguments, retries, routing; no coalescing, no lease, no transaction with
the change that needs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

import redis
from celery import Celery

QUEUE = "bench-per-key"
CONFIGURATION = (
    f"Celery {version('celery')}, Redis protocol broker, one worker process, --pool threads --concurrency 4, no result "
    "backend, early acknowledgement, prefetch 4 a thread, one no-op task for each key"
)

app = Celery("bench", broker=os.environ.get("CELERY_BROKER_URL", "redis://"))
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=4, task_default_queue=QUEUE)


@app.task(name="bench.converge")
def converge(key: str) -> None:
    """Converge nothing."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A running worker that consumes only while a measurement lasts."""

    broker: redis.Redis

    def drain(self, tasks: int) -> float:
        """Publish ``tasks`` tasks while nothing consumes, then let the worker have them; tasks a second."""
        with app.producer_or_acquire() as producer:
            for number in range(tasks):
                converge.apply_async([f"key-{number}"], producer=producer)
        assert self.broker.llen(QUEUE) == tasks
        began = time.perf_counter()
        app.control.add_consumer(QUEUE)
        # A task leaves "unacked" when the worker takes it for good.
        while self.broker.llen(QUEUE) or self.broker.hlen("unacked"):
            time.sleep(0.002)
        seconds = time.perf_counter() - began
        # Without a limit, a broadcast that asks for replies waits its whole timeout.
        app.control.cancel_consumer(QUEUE, reply=True, timeout=5, limit=1)
        return tasks / seconds


@contextmanager
def worker() -> Iterator[Worker]:
    """Start a worker process on the broker of the environment, and stop it afterwards."""
    broker = redis.Redis.from_url(os.environ["CELERY_BROKER_URL"])
    broker.delete(QUEUE)
    command = [sys.executable, "-m", "celery", "--app", "benchmarks.peers.celery_per_key", "worker"]
    options = ["--pool", "threads", "--concurrency", "4", "--queues", "bench-idle", "--loglevel", "ERROR"]
    quiet = ["--without-gossip", "--without-mingle", "--hostname", f"bench-{os.getpid()}@localhost"]
    process = subprocess.Popen([*command, *options, *quiet], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 30
        while not app.control.ping(timeout=0.5):
            assert process.poll() is None, "the Celery worker ended while it started"
            assert time.monotonic() < deadline, "the Celery worker does not answer after 30 s"
        yield Worker(broker)
    finally:
        process.terminate()
        process.wait(20)
        broker.delete(QUEUE)
        broker.close()
