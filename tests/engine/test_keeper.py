"""The keeper goes on whatever happens in one look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest
from django.db import connection

from better_compute import conf
from better_compute.contract.contexts import ReconcileContext
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, Outcome
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine import pausing
from better_compute.engine.dispatch import Dispatcher, InFlight, Lane
from better_compute.engine.keeper import Keeper
from better_compute.engine.membership import Membership
from better_compute.store.session import Session

from .conftest import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_look_that_raises_voids_trust_and_the_next_one_restores_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = conf.Worker(tick_ms=100)
    member = Membership("controllers", {}, settings=settings)
    keeper = Keeper([member], Dispatcher([], settings), Session("default", "t", {}), settings, lambda id: None)
    step: Callable[..., bool] = Keeper.step
    trusted: list[bool] = []

    def broken(self: Keeper, cursor: Any, membership: Membership) -> bool:
        trusted.append(membership.trusted)
        if len(trusted) == 2:
            raise ValueError("a defect")
        return step(self, cursor, membership)

    monkeypatch.setattr(Keeper, "step", broken)
    thread = Thread(target=keeper.run)
    thread.start()
    try:
        eventually(lambda: len(trusted) >= 4)
        assert trusted[:4] == [False, True, False, True]
    finally:
        keeper.stop()
        thread.join(10)


class Idle(Reconciler):
    """Never run here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return DONE


@contextmanager
def kept(*names: str) -> Iterator[tuple[Keeper, Membership, dict[str, Lane]]]:
    """A keeper at work for a member with these reconcilers, once it holds their leases; polls are an hour apart."""
    settings = conf.Worker(tick_ms=100, poll_ms=3_600_000)
    reconcilers = {name: Idle(name) for name in names}
    member = Membership("controllers", reconcilers, settings=settings)
    spec = ModuleSpec("t", "tests", "t", reconcilers=tuple(reconcilers.values()))
    lanes = {name: Lane(spec, reconciler, member) for name, reconciler in reconcilers.items()}
    dispatcher = Dispatcher(list(lanes.values()), settings)
    keeper = Keeper([member], dispatcher, Session("default", "t", {}), settings, lambda id: None)
    thread = Thread(target=keeper.run)
    thread.start()
    try:
        eventually(lambda: len(member.holds) == len(names) and all(lane.ready for lane in lanes.values()))
        yield keeper, member, lanes
    finally:
        keeper.stop()
        thread.join(10)


def held_leases() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM compute_leases WHERE holder IS NOT NULL")
        return {name for (name,) in cursor.fetchall()}


def test_a_kind_that_is_resumed_is_looked_at_without_waiting_for_a_poll() -> None:
    with kept("t.a") as (_, member, lanes):
        pausing.pause("kind:t.a", reason="an incident", by="tests")
        eventually(lambda: member.is_paused("t.a"))
        lanes["t.a"].ready = False
        pausing.resume("kind:t.a")
        eventually(lambda: lanes["t.a"].ready)


def test_a_member_that_is_trusted_again_looks_without_waiting_for_a_poll() -> None:
    with kept("t.a") as (_, member, lanes):
        lanes["t.a"].ready = False
        member.distrust()
        eventually(lambda: lanes["t.a"].ready)


def test_a_member_that_retires_gives_back_what_nothing_runs_under_and_the_rest_as_runs_end() -> None:
    with kept("t.a", "t.b") as (keeper, member, lanes):
        lanes["t.b"].running["k"] = InFlight(1, "singleton:t.b", datetime.now(UTC))
        keeper.retire()
        eventually(lambda: held_leases() == {"singleton:t.b"})
        assert member.trusted
        lanes["t.b"].running.clear()
        eventually(lambda: held_leases() == set())
