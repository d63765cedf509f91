"""Real worker processes on the test database, and patient questions about what they did."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from better_compute.engine.shards import UNSHARDED, shard_of
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.warm import Warm

ROOT = Path(__file__).resolve().parents[2]
SHARDED = {"plant.nodes", "plant.bulk", "plant.placer"}


def eventually(question: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The first true answer; fails with the last one after ``seconds``."""
    until = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < until, f"still {answer!r} after {seconds} s"
        time.sleep(0.02)


def ask(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return list(cursor.fetchall()) if cursor.description else []


def told(what: str, key: str | None = None) -> list[dict[str, Any]]:
    """What the plant told of ``what``, in order."""
    rows = ask(
        "SELECT subject, data FROM compute_outbox WHERE type = %s AND (%s::text IS NULL OR subject = %s) ORDER BY id",
        f"plant.{what}",
        key,
        key,
    )
    import json

    return [{"key": subject, **(json.loads(data) if isinstance(data, str) else data)} for subject, data in rows]


def enqueue(kind: str, *keys: str) -> None:
    """Commit wake-ups."""
    with transaction.transaction():
        transaction.enqueue([WorkRow(kind, key, shard_of(key) if kind in SHARDED else UNSHARDED) for key in keys])


def queued(kind: str) -> list[str]:
    """The keys in the queue of ``kind``."""
    return [key for (key,) in ask("SELECT key FROM compute_work WHERE kind = %s ORDER BY key", kind)]


class Worker:
    """One ``celery worker`` process."""

    def __init__(self, warm: Warm, env: dict[str, str], log: Path, *options: str) -> None:
        self.log = log
        with log.open("w") as file:
            self.process = warm.python(
                *("-m", "celery", "-A", "example_project", "worker", "-l", "INFO", "-c", "2"),
                *("--without-gossip", "--without-mingle"),
                *(options or ("-P", "threads")),
                folder=ROOT,
                environment=env,
                log=file,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def member(self) -> str:
        """Its member's id, once it has one."""
        return str(eventually(lambda: ask("SELECT id FROM compute_workers WHERE pid = %s ORDER BY id", self.pid))[0][0])

    def holds(self) -> list[str]:
        """The leases it holds."""
        return [
            name
            for (name,) in ask(
                "SELECT l.name FROM compute_leases l JOIN compute_workers w ON w.id = l.holder WHERE w.pid = %s",
                self.pid,
            )
        ]

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def wait(self, seconds: float = 30.0) -> int:
        return self.process.wait(seconds)

    def text(self) -> str:
        return self.log.read_text()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def start_worker(
    transactional_db: None, process_env: dict[str, str], tmp_path: Path, warm_project: Warm
) -> Iterator[Callable[..., Worker]]:
    """Start a worker process; ends with the test."""
    workers: list[Worker] = []

    def start(*options: str, **environment: str) -> Worker:
        env = {**process_env, "DJANGO_SETTINGS_MODULE": "tests.engine.plant_settings", "C_FORCE_ROOT": "1"}
        env.update(environment)
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        worker = Worker(warm_project, env, tmp_path / f"worker{len(workers)}.log", *options)
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.end()
