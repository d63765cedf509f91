"""Processes that stand still: a worker, or the server's side of one of its connections. Nobody waits for them for ever.

A server process is stopped only while it waits for its client, so that it holds nothing that others need.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from better_compute.engine import listener as listening
from better_compute.engine.listener import Listener

from .conftest import Worker, ask, enqueue, eventually, queued, told
from .test_worker import ready

pytestmark = pytest.mark.django_db(transaction=True)
Start = Callable[..., Worker]
Freeze = Callable[[int], None]

WAITING = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND wait_event = 'ClientRead' AND state = %s AND {}
"""
# Its events go out with the commit, so the fence is what its transaction has asked last.
HANDLER = WAITING.format("query LIKE '%%compute_fence%%plant.holds%%'")
NAMED = WAITING.format("application_name = %s")


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.fixture
def freeze() -> Iterator[Freeze]:
    """Stop a process until the test ends; a server's only where this machine is the server."""
    stopped: list[int] = []

    def freeze(pid: int) -> None:
        try:
            os.kill(pid, signal.SIGSTOP)
        except (ProcessLookupError, PermissionError):
            pytest.skip("the server's processes are not ours to stop")
        stopped.append(pid)
        eventually(lambda: is_stopped(pid))

    yield freeze
    for pid in stopped:
        thaw(pid)


def thaw(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def freeze_waiting(freeze: Freeze, sql: str, *params: object) -> int:
    """Stop the server process that the query finds; one that has begun something meanwhile is let go first."""
    while True:
        [(pid,)] = eventually(lambda: ask(sql, *params))
        comm = Path(f"/proc/{pid}/comm")
        if not comm.exists() or comm.read_text().strip() != "postgres":
            pytest.skip("the server's processes are not ours to stop")
        freeze(pid)
        if (pid,) in ask(sql, *params):
            return int(pid)
        thaw(pid)


def holder(lease: str) -> int | None:
    rows = ask("SELECT w.pid FROM compute_leases l JOIN compute_workers w ON w.id = l.holder WHERE l.name = %s", lease)
    return rows[0][0] if rows else None


def two_workers(start_worker: Start, **environment: str) -> tuple[Worker, Worker]:
    """The one that holds ``singleton:plant.holds``, and another."""
    workers = [start_worker(**environment), start_worker(**environment)]
    ready(*workers)
    eventually(lambda: all(worker.holds() for worker in workers))
    # Every lease is where the two of them want it.
    eventually(lambda: abs(len(workers[0].holds()) - len(workers[1].holds())) < 100)
    first = eventually(lambda: holder("singleton:plant.holds"))
    return (workers[0], workers[1]) if workers[0].pid == first else (workers[1], workers[0])


def test_a_worker_frozen_inside_its_fenced_transaction_loses_it_and_commits_nothing(
    start_worker: Start, freeze: Freeze
) -> None:
    first, second = two_workers(start_worker, PLANT_TTL_MS="6000", PLANT_TICK_MS="500")
    enqueue("plant.holds", "2")
    eventually(lambda: ask(HANDLER, "idle in transaction"))
    freeze(first.pid)
    eventually(lambda: holder("singleton:plant.holds") == second.pid, 20)
    eventually(lambda: told("held", "2"), 20)
    thaw(first.pid)
    eventually(lambda: "plant.holds failed for 2" in first.text() or "joining anew" in first.text())
    eventually(lambda: not queued("plant.holds"), 20)
    assert {run["pid"] for run in told("held", "2")} == {second.pid}


def test_a_frozen_backend_keeps_its_one_lease_and_lets_it_go_with_nothing_committed(
    start_worker: Start, freeze: Freeze
) -> None:
    first, second = two_workers(start_worker)
    enqueue("plant.holds", "1")
    backend = freeze_waiting(freeze, HANDLER, "idle in transaction")
    first.kill()
    # Everything but what the frozen transaction fences is taken over.
    eventually(lambda: len(second.holds()) >= 256 * 2 + 7, 20)
    assert "singleton:plant.holds" not in second.holds()
    enqueue("plant.marks", "meanwhile")
    eventually(lambda: told("ran", "meanwhile"))
    thaw(backend)
    eventually(lambda: holder("singleton:plant.holds") == second.pid, 20)
    eventually(lambda: not queued("plant.holds"), 20)
    assert {run["pid"] for run in told("held", "1")} == {second.pid}


def test_a_handler_whose_backend_is_frozen_gets_its_thread_back(start_worker: Start, freeze: Freeze) -> None:
    worker = start_worker(PLANT_HUNG_MS="1000")
    ready(worker)
    enqueue("plant.holds", "1")
    freeze_waiting(freeze, HANDLER, "idle in transaction")
    eventually(lambda: "Unanswered (SQLSTATE 08006)" in worker.text())
    eventually(lambda: ask("SELECT 1 FROM compute_work WHERE kind = 'plant.holds' AND attempts = 1"))
    enqueue("plant.marks", "meanwhile")
    eventually(lambda: told("ran", "meanwhile"))


@pytest.mark.parametrize("name", ["compute-members", "compute-queue"])
def test_a_worker_reconnects_when_the_backend_of_its_own_is_frozen(
    start_worker: Start, freeze: Freeze, name: str
) -> None:
    worker = start_worker()
    ready(worker)
    frozen = freeze_waiting(freeze, NAMED, "idle", name)
    eventually(lambda: "has not answered for 1.5 s" in worker.text())
    enqueue("plant.marks", "k")
    enqueue("plant.nodes", "node-1")
    eventually(lambda: told("ran", "k") and told("ran", "node-1"))
    assert is_stopped(frozen)
    assert worker.process.poll() is None


def test_a_listener_whose_backend_is_frozen_listens_on_another(freeze: Freeze, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(listening, "ANSWER_SECONDS", 0.5)
    ears = Listener("default", lambda pairs: None, lambda: None)
    thread = Thread(target=ears.run, daemon=True)
    thread.start()
    try:
        eventually(lambda: ears.up)
        frozen = freeze_waiting(freeze, NAMED, "idle", "compute-listen")
        others = "SELECT pid FROM pg_stat_activity WHERE application_name = 'compute-listen' AND pid <> %s"
        eventually(lambda: ask(others, frozen) and ears.up)
        assert is_stopped(frozen)
    finally:
        ears.stop()
        thread.join(10)
    assert not thread.is_alive()
