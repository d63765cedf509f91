"""Real Celery workers: what they run, and what happens to them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from better_compute.store.claims import CRASHED
from better_compute.testing import advance_clock

from .conftest import Worker, ask, enqueue, eventually, queued, told

pytestmark = pytest.mark.django_db(transaction=True)
Start = Callable[..., Worker]


def ready(*workers: Worker) -> None:
    """Wait until every lease is held by one of ``workers``."""
    wanted = 256 * 2 + 8
    eventually(lambda: sum(len(worker.holds()) for worker in workers) >= wanted, 60)


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_worker_runs_what_is_committed(start_worker: Start, pool: str) -> None:
    worker = start_worker("-P", pool)
    ready(worker)
    enqueue("plant.marks", "one")
    enqueue("plant.nodes", "node-1", "node-2")
    eventually(lambda: len(told("ran", "one")) == 1 and len(told("ran", "node-2")) == 1)
    eventually(lambda: not queued("plant.marks") and not queued("plant.nodes"))
    assert told("ran", "one")[0]["pid"] == worker.pid


def test_prefork_is_refused_with_the_mend(start_worker: Start) -> None:
    worker = start_worker("-P", "prefork")
    assert worker.wait() == 1
    assert "run with --pool threads or --pool solo, not prefork" in worker.text()
    assert "Start one worker a core" in worker.text()


def test_the_role_that_serves_is_enough_to_run_and_to_bury(start_worker: Start, app_url: str) -> None:
    first = start_worker(DATABASE_URL=app_url, PLANT_TTL_MS="30000", PLANT_TICK_MS="1000")
    ready(first)
    enqueue("plant.marks", "one")
    eventually(lambda: told("ran", "one"))
    second = start_worker(DATABASE_URL=app_url, PLANT_TTL_MS="30000", PLANT_TICK_MS="1000")
    eventually(lambda: second.holds())
    first.kill()
    ready(second)


def test_a_worker_that_cannot_run_says_why_and_ends(start_worker: Start) -> None:
    worker = start_worker(COMPUTE_ROLES="placers")
    assert worker.wait(20) == 1
    assert "COMPUTE_ROLES names placers, which is no worker role. Use all, controllers or scheduler." in worker.text()


@pytest.mark.parametrize(
    ("how", "told"), [("raises", "ValueError: password=..."), ("misses a table", "UndefinedTable (SQLSTATE 42P01)")]
)
def test_a_worker_whose_module_does_not_start_says_why_and_ends(start_worker: Start, how: str, told: str) -> None:
    worker = start_worker(PLANT_START=how)
    assert worker.wait(20) == 1
    assert f"this worker cannot run: {told}" in worker.text()


def test_a_periodic_key_comes_back(start_worker: Start) -> None:
    start_worker()
    eventually(lambda: len(told("ran", "beat")) >= 3)
    assert ask("SELECT every_ms FROM compute_work WHERE kind = 'plant.beats'") == [(1000,)]


def test_a_failing_key_is_kept_with_its_error(start_worker: Start) -> None:
    start_worker()
    enqueue("plant.fails", "k")
    eventually(lambda: len(told("ran", "k")) >= 2)
    [(attempts, error)] = ask("SELECT attempts, last_error FROM compute_work WHERE kind = 'plant.fails'")
    assert attempts >= 1
    assert error == "ValueError: no  luck with k"


def failed_twice(kind: str) -> list[tuple[str, str]]:
    """The keys of ``kind`` that failed and came back, with their errors."""
    return ask("SELECT key, last_error FROM compute_work WHERE kind = %s AND attempts > 1 ORDER BY key", kind)


def test_whatever_a_handler_raises_is_a_failure_of_its_key_and_ends_no_thread(start_worker: Start) -> None:
    quits = ["CancelledError", "GeneratorExit", "KeyboardInterrupt", "SystemExit"]
    enqueue("plant.quits", *quits)
    enqueue("plant.quits-many", "a", "b")
    worker = start_worker()
    eventually(lambda: len(failed_twice("plant.quits") + failed_twice("plant.quits-many")) == 6)
    assert failed_twice("plant.quits") == [(key, f"{key}: enough") for key in quits]
    assert failed_twice("plant.quits-many") == [(key, "KeyboardInterrupt: enough") for key in ("a", "b")]
    enqueue("plant.marks", "after")
    eventually(lambda: told("ran", "after"))
    worker.terminate()
    assert worker.wait() == 0


def test_a_batch_reconciler_gets_many_keys_at_once(start_worker: Start) -> None:
    keys = [f"node-{number}" for number in range(300)]
    enqueue("plant.bulk", *keys)
    start_worker()
    eventually(lambda: not queued("plant.bulk"))
    assert sorted(row["key"] for row in told("ran") if row["key"].startswith("node-")) == sorted(keys)
    assert len(told("batch")) < 60


def test_postgresql_refuses_a_write_outside_the_fenced_transaction(start_worker: Start) -> None:
    start_worker()
    enqueue("plant.outside", "k")
    [(error,)] = eventually(
        lambda: ask("SELECT last_error FROM compute_work WHERE kind = 'plant.outside' AND last_error IS NOT NULL")
    )
    assert "cannot execute UPDATE in a read-only transaction" in error
    assert "a write outside ctx.sql.transaction()" in error


def test_sigterm_aborts_runs_and_gives_back_the_leases_at_once(start_worker: Start) -> None:
    worker = start_worker()
    ready(worker)
    enqueue("plant.slow", "k:60")
    eventually(lambda: told("started", "k:60"))
    began = time.monotonic()
    worker.terminate()
    eventually(lambda: ask("SELECT count(*) FROM compute_workers")[0][0] == 0)
    seconds = time.monotonic() - began
    assert told("aborted", "k:60")
    assert ask("SELECT count(*) FROM compute_leases WHERE holder IS NOT NULL") == [(0,)]
    assert worker.wait() == 0
    assert seconds < 2.5


def test_a_killed_worker_is_replaced_before_its_lease_would_end(start_worker: Start) -> None:
    first = start_worker(PLANT_TTL_MS="30000", PLANT_TICK_MS="1000")
    ready(first)
    second = start_worker(PLANT_TTL_MS="30000", PLANT_TICK_MS="1000")
    eventually(lambda: second.holds())
    began = time.monotonic()
    first.kill()
    ready(second)
    assert time.monotonic() - began < 3


def test_a_frozen_worker_is_replaced_when_its_lease_ends(start_worker: Start) -> None:
    first = start_worker()
    ready(first)
    second = start_worker()
    eventually(lambda: second.holds())
    os.kill(first.pid, signal.SIGSTOP)
    try:
        ready(second)
        enqueue("plant.marks", "after")
        eventually(lambda: told("ran", "after"))
    finally:
        os.kill(first.pid, signal.SIGCONT)
    eventually(lambda: "joining anew" in first.text())
    ready(first, second)


def test_leases_are_shared_evenly_and_handed_over(start_worker: Start) -> None:
    first = start_worker()
    ready(first)
    second = start_worker()
    eventually(lambda: len(second.holds()) > 180)
    ready(first, second)
    assert max(len(first.holds()), len(second.holds())) <= 300
    second.terminate()
    eventually(lambda: len(first.holds()) >= 520, 5)


def test_a_key_that_kills_its_process_is_isolated(start_worker: Start) -> None:
    def isolated() -> bool:
        return ask("SELECT key, last_error, attempts > 0 FROM compute_work WHERE kind = 'plant.poison'") == [
            ("poison", CRASHED, True)
        ]

    enqueue("plant.poison", "a", "b", "poison")
    died = 0
    for _ in range(4):
        worker = start_worker()
        eventually(lambda: isolated() or worker.process.poll() is not None, 20)  # noqa: B023
        died += worker.process.poll() == 9
        if isolated():
            break
    assert died
    assert isolated()
    assert {row["key"] for row in told("started")} == {"a", "b", "poison"}


def test_every_backend_killed_costs_nothing(start_worker: Start) -> None:
    worker = start_worker()
    ready(worker)
    ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    enqueue("plant.marks", *[f"k{number}" for number in range(20)])
    eventually(lambda: not queued("plant.marks"))
    assert worker.process.poll() is None


def test_a_worker_starts_without_a_broker_and_runs_keys(start_worker: Start) -> None:
    worker = start_worker(CELERY_BROKER_URL="redis://127.0.0.1:9/0")
    ready(worker)
    enqueue("plant.marks", "k")
    eventually(lambda: told("ran", "k"))
    worker.terminate()
    assert worker.wait() == 0


def test_hung_runs_are_reported_with_their_stack(start_worker: Start) -> None:
    worker = start_worker(PLANT_HUNG_MS="500")
    enqueue("plant.slow", "k:2")
    eventually(lambda: told("ended", "k:2"))
    assert "plant.slow has run k:2 for" in worker.text()
    assert "in run" in worker.text()


def test_the_clock_ends_a_lease_and_the_fence_refuses_the_loser(start_worker: Start) -> None:
    worker = start_worker(PLANT_TTL_MS="30000", PLANT_TICK_MS="10000")
    ready(worker)
    enqueue("plant.slow", "k:3")
    [begun] = eventually(lambda: told("started", "k:3"))
    advance_clock(timedelta(seconds=31))
    eventually(lambda: told("ended", "k:3"), 30)
    assert all(row["epoch"] > begun["epoch"] for row in told("ended", "k:3") + told("aborted", "k:3"))
    assert ask("SELECT coalesce(max(attempts), 0) FROM compute_work WHERE kind = 'plant.slow'") == [(0,)]


def test_scheduler_and_controllers_are_separate_members(start_worker: Start) -> None:
    worker = start_worker()
    ready(worker)
    roles = ask("SELECT role, id LIKE 'scheduler/%%' FROM compute_workers WHERE pid = %s ORDER BY role", worker.pid)
    assert roles == [("controllers", False), ("scheduler", True)]
    only = start_worker(COMPUTE_ROLES="scheduler")
    eventually(lambda: only.holds())
    assert all(name.startswith("scheduler/shard:") for name in only.holds())
    enqueue("plant.placer", "pool-1")
    eventually(lambda: told("ran", "pool-1"))
