"""Simulated members in the hands of a module author: the example of the how-to page, with its variations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from better_compute.engine.contexts import WorkPort
from better_compute.store import leases
from better_compute.store.transaction import transaction
from better_compute.testing import advance_clock
from better_compute.testing.member import SimulatedMember
from tests.engine.conftest import ask

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., SimulatedMember]

KIND = "acme.widgets"


def enqueue(key: str) -> None:
    with transaction():
        WorkPort().enqueue(KIND, key)


def holder() -> str | None:
    [(holder,)] = ask("SELECT holder FROM compute_leases WHERE name = %s", leases.singleton_lease(KIND))
    return None if holder is None else str(holder)


def test_a_member_runs_what_is_enqueued(simulated_member: Make) -> None:
    member = simulated_member()
    member.tick(KIND)
    enqueue("t1")
    assert member.tick(KIND) == 1
    assert member.tick(KIND) == 0


def test_a_member_that_slept_past_its_lease_is_replaced(simulated_member: Make) -> None:
    first = simulated_member()
    first.tick(KIND)
    enqueue("t1")
    assert first.run_until("started", KIND)
    advance_clock(timedelta(seconds=30))
    second = simulated_member()
    assert holder() == second.id
    assert second.tick(KIND) >= 1
    first.finish()
    assert holder() == second.id


def test_a_crash_leaves_the_key_for_the_next_member(simulated_member: Make) -> None:
    first = simulated_member()
    first.tick(KIND)
    enqueue("t1")
    assert first.run_until("started", KIND)
    first.crash()
    advance_clock(timedelta(seconds=30))
    second = simulated_member()
    assert second.tick(KIND) >= 1
    assert ask("SELECT key FROM compute_work WHERE kind = %s AND every_ms IS NULL", KIND) == []


def test_a_member_that_stood_by_takes_over_from_one_that_crashed(simulated_member: Make) -> None:
    first, second = simulated_member(), simulated_member()
    enqueue("t1")
    member, other = (first, second) if holder() == first.id else (second, first)
    assert member.run_until("started", KIND)
    member.crash()
    advance_clock(timedelta(seconds=30))
    # Its own row has ended too, as far as the database's clock can tell; a beat joins anew and buries the other.
    other.step()
    assert holder() == other.id
    assert other.tick(KIND) >= 1
