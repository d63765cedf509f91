"""Turns of one thread, taken by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import pytest

from better_compute import conf
from better_compute.contract.contexts import ReconcileContext
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, SYNC_AGAIN, Outcome
from better_compute.contract.reconcilers import Periodic, Reconciler
from better_compute.engine import turns as turns_module
from better_compute.engine.dispatch import Dispatcher, Lane
from better_compute.engine.membership import Membership
from better_compute.engine.periodic import seed
from better_compute.engine.turns import Turns
from better_compute.store import claims, work
from better_compute.store.session import Session, connect

pytestmark = pytest.mark.django_db(transaction=True)


def done() -> Outcome:
    return DONE


def again() -> Outcome:
    return SYNC_AGAIN


def fail() -> Outcome:
    raise ValueError("no luck")


class Ends(Reconciler):
    """Ends as the test says."""

    name = "t.ends"

    def __init__(self, how: Callable[[], Outcome], *, periodic: bool = False) -> None:
        self._how = how
        self.periodic = (Periodic("k", every="10m"),) if periodic else ()

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return self._how()


@contextmanager
def turns(reconciler: Reconciler, kind: type[Turns] = Turns) -> Iterator[tuple[Turns, Lane]]:
    """A thread's turns for one lane, with its lease held."""
    member = Membership("controllers", {reconciler.name: reconciler})
    session = Session("default", "test-turns", {"lock_timeout": "100ms"})
    with session.cursor() as cursor:
        seed(cursor, [reconciler])
        member.join(cursor)
        member.balance(cursor)
        work.insert_missing(cursor, [work.WorkRow(reconciler.name, "k", -1)])
    lane = Lane(ModuleSpec("t", "tests", "t", reconcilers=(reconciler,)), reconciler, member)
    yield kind(Dispatcher([lane], conf.Worker()), session, conf.Worker()), lane
    session.close()


@pytest.mark.parametrize(
    ("reconciler", "least", "most"),
    [
        (Ends(done), 0.005, 0.02),
        (Ends(again), 0.005, 0.02),
        (Ends(done, periodic=True), 0.005, 0.02),
        (Ends(fail), 0.4, 1.1),
    ],
    ids=["done", "again", "periodic", "failed"],
)
def test_a_key_whose_row_is_held_cools_down_however_it_ended(reconciler: Reconciler, least: float, most: float) -> None:
    with turns(reconciler) as (thread, lane), connect("default", "host", {}) as host, host.transaction():
        work.upsert(host.cursor(), [work.WorkRow(reconciler.name, "k", -1)])
        before = monotonic()
        assert thread.run_next()
        after = monotonic()
        [(key, (until, _))] = lane.cool.items()
    assert key == "k"
    assert before + least < until < after + most


def test_a_key_that_could_be_written_does_not_cool() -> None:
    with turns(Ends(again)) as (thread, lane):
        lane.cool["k"] = (0.0, 3)
        assert thread.run_next()
        assert lane.cool == {}


def test_keys_whose_note_could_not_be_written_are_claimed_again() -> None:
    """Fault: the member's row is locked by another transaction for longer than the statement may wait."""
    ran = []
    with turns(Ends(lambda: ran.append("k") or DONE)) as (thread, lane), connect("default", "host", {}) as host:
        host.execute("UPDATE compute_work SET last_error = %s", [claims.CRASHED])
        lane.ready = True
        with host.transaction():
            host.execute("SELECT FROM compute_workers FOR UPDATE")
            assert thread.run_next()
            assert ran == []
            assert lane.running == {}
        lane.ready = True
        assert thread.run_next()
    assert ran == ["k"]


def test_keys_that_a_turn_had_no_time_to_start_are_due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "TURN_SECONDS", 0.0)
    ran = []
    with turns(Ends(lambda: ran.append("k") or DONE)) as (thread, lane), thread.queue.cursor() as cursor:
        work.insert_missing(cursor, [work.WorkRow("t.ends", key, -1) for key in ("l", "m")])
        lane.cost = 0.0001
        for _ in range(3):
            assert lane.ready or not ran
            assert thread.run_next()
    assert len(ran) == 3


def test_a_key_that_becomes_due_behind_the_look_is_not_left_to_the_poll() -> None:
    class Late(Turns):
        """A key becomes due after the pass and before it is asked which is due next."""

        def _say_idle(self, lane: Lane) -> None:
            with self.queue.cursor() as cursor:
                cursor.execute("UPDATE compute_work SET not_before = compute_now()")

    with turns(Ends(done), Late) as (thread, lane):
        with thread.queue.cursor() as cursor:
            cursor.execute("UPDATE compute_work SET not_before = compute_now() + interval '1 hour'")
        assert thread.run_next()
        assert lane.timer is not None
        assert lane.timer < monotonic() + 0.5  # it polls after a second


@pytest.mark.parametrize(("cost", "keys"), [(None, 1), (1.0, 1), (0.001, 50), (0.0001, 100), (0.00001, 500)], ids=str)
def test_the_cheaper_a_kinds_keys_the_more_are_claimed_at_once(cost: float | None, keys: int) -> None:
    reconciler = Ends(done)
    lane = Lane(ModuleSpec("t", "tests", "t"), reconciler, Membership("controllers", {}), cost=cost)
    assert lane.limit(100) == keys
