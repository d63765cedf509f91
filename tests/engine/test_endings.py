"""How a worker ends, measured by the database's own clock, and what wakes it when nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import example_project.celery  # noqa: F401 - so that this process sends hints

from .conftest import Worker, ask, enqueue, eventually, told
from .test_worker import ready

pytestmark = pytest.mark.django_db(transaction=True)
Start = Callable[..., Worker]


def test_sigterm_hands_over_within_a_second_of_the_last_key(start_worker: Start) -> None:
    first = start_worker()
    ready(first)
    second = start_worker()
    eventually(lambda: len(second.holds()) > 180, 20)
    ready(first, second)
    enqueue("plant.slow", "k:60")
    eventually(lambda: told("started", "k:60"))
    [runner] = {row["pid"] for row in told("started", "k:60")}
    ending, staying = (first, second) if runner == first.pid else (second, first)
    ending.terminate()
    ready(staying)
    [(seconds,)] = ask(
        "SELECT EXTRACT(EPOCH FROM max(lease.acquired_at) - max(ended.created_at)) FROM compute_leases lease, "
        "(SELECT created_at FROM compute_outbox WHERE type = 'plant.aborted') AS ended"
    )
    assert seconds < 1
    assert ending.wait() == 0


def test_a_hint_alone_wakes_a_worker(start_worker: Start) -> None:
    """It neither listens nor polls within the time of this test."""
    worker = start_worker(PLANT_POOLED="1", PLANT_POLL_MS="600000")
    ready(worker)
    # What it looked for when it got its leases is over; from now on only a hint can tell it anything.
    enqueue("plant.marks", "first")
    eventually(lambda: told("ran", "first"), 30)

    def heard() -> bool:
        enqueue("plant.marks", "second")
        return bool(told("ran", "second"))

    # A single hint may be lost; none of them is what no poll and no notification could make up for.
    eventually(heard, 30)
