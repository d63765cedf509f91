"""What users of other queues have reported, tried here with its whole kind (numbers are those threads' own)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import Any, get_args

import pytest
from django.db import connection

from better_compute import conf, registry
from better_compute.contract.contexts import ReconcileContext
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, SYNC_AGAIN, Outcome
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine.membership import Membership
from better_compute.engine.runtime import Runtime
from better_compute.store import ends, passes, work
from better_compute.store.ends import Ended
from better_compute.store.leases import singleton_lease
from better_compute.store.session import connect
from better_compute.store.work import WorkRow
from better_compute.testing import advance_clock
from better_compute.testing.faults import Point
from better_compute.testing.fixtures import simulated_member
from better_compute.testing.member import SimulatedMember
from tests.chaos.breaks import INCARNATION

from .conftest import Worker, ask, enqueue, eventually, queued, told
from .test_turns import Ends, turns
from .test_worker import ready

__all__ = ["simulated_member"]

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., SimulatedMember]
Start = Callable[..., Worker]

KIND = "t.visits"


class Visits(Reconciler):
    """Opens one fenced transaction."""

    name = KIND

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        with ctx.sql.transaction():
            ctx.sql.query("SELECT 1")
        return DONE


@pytest.fixture
def hosted() -> Iterator[None]:
    spec = ModuleSpec("t", "tests", "t", reconcilers=(Visits(),))
    with registry.override(*registry.current().modules, spec):
        yield


@pytest.fixture
def member(hosted: None, simulated_member: Make) -> Make:
    """Make members that host :class:`Visits`."""
    return simulated_member


def test_a_key_enqueued_a_thousand_times_while_it_runs_runs_once_more(member: Make) -> None:
    """TkTech/chancy#51: pushing a running key let a second worker run it."""
    first, second = member(), member()
    for each in (first, second):
        each.step()
    held = [each for each in (first, second) if singleton_lease(KIND) in each.membership.holds]
    [holder] = held
    other = second if holder is first else first
    enqueue(KIND, "k")
    assert holder.run_until("fenced", KIND)
    with connection.cursor() as cursor:
        for _ in range(1_000):
            work.upsert(cursor, [WorkRow(KIND, "k", -1)])
    assert other.tick(KIND) == 0
    holder.finish()
    assert ask("SELECT generation FROM compute_work WHERE kind = %s", KIND) == [(1_001,)]
    assert (holder.tick(KIND), holder.tick(KIND)) == (1, 0)


@pytest.mark.parametrize("point", get_args(Point))
def test_a_process_killed_at_any_step_of_a_run_leaves_its_key_to_another(member: Make, point: Point) -> None:
    """django-tasks#46: an unclean exit left a task running for ever."""
    first = member()
    enqueue(KIND, "k")
    assert first.run_until(point, KIND)
    first.crash()
    assert queued(KIND) == ["k"]
    advance_clock(timedelta(seconds=30))
    assert member().tick(KIND) == 1
    assert queued(KIND) == []


@pytest.mark.parametrize("rule", ["", INCARNATION], ids=["as it is", "without the incarnation"])
def test_a_claim_older_than_its_lease_takes_no_later_wake_up_along(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """awa ADR-013: a number that begins anew lets a late finish pass for a timely one.

    Between the claim and the run another member runs the key and gives the lease back, all of it while this process
    stands still. The key is enqueued anew during the run.
    """
    ran: list[str] = []

    def run() -> Outcome:
        ran.append("k")
        if len(ran) == 1:
            enqueue(lane.name, "k")
        return DONE

    claim = passes.claim_noted

    def overtaken(*arguments: Any) -> passes.Found:
        found = claim(*arguments)
        if not ran:
            with connection.cursor() as cursor:
                lease = singleton_lease(lane.name)
                lane.membership.give_back(cursor, [lease])
                other = Membership("controllers", {lane.name: lane.reconciler})
                other.join(cursor)
                epoch = other.take(cursor, [lease])[lease]
                ended = [Ended(each, lease, epoch) for each in found.claimed]
                assert ends.finish_done(cursor, other.id, lane.name, ended) == {"k"}
                other.leave(cursor)
                assert lane.membership.take(cursor, [lease])
        return found

    monkeypatch.setattr(passes, "claim_noted", overtaken)
    if rule:
        monkeypatch.setattr(passes, "FINISH_AND_CLAIM", passes.FINISH_AND_CLAIM.replace(rule, ""))
    with turns(Ends(run)) as (thread, lane):
        assert thread.run_next()
    assert (ran, queued("t.ends")) == (["k"], [] if rule else ["k"])


def fail() -> Outcome:
    raise ValueError("no luck")


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Fault: PostgreSQL refuses to end runs."""
    ask(
        "CREATE FUNCTION refuse_ends() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the end of a run is refused'; END $$"
    )
    ask(f"CREATE TRIGGER refuse_ends BEFORE {what} ON compute_work FOR EACH ROW EXECUTE FUNCTION refuse_ends()")
    try:
        yield
    finally:
        ask("DROP FUNCTION refuse_ends CASCADE")


@pytest.mark.parametrize(
    ("how", "what"),
    [(lambda: DONE, "DELETE"), (lambda: SYNC_AGAIN, "UPDATE"), (fail, "UPDATE")],
    ids=["done", "again", "failed"],
)
def test_a_key_whose_end_cannot_be_written_runs_again(how: Callable[[], Outcome], what: str) -> None:
    """procrastinate#1446: a failure inside the completion wedged the job under a live worker."""
    ran: list[str] = []

    def run() -> Outcome:
        ran.append("k")
        return how()

    with turns(Ends(run)) as (thread, lane):
        with refusing(what):
            assert thread.run_next()
        assert (ran, lane.running, lane.turns) == (["k"], {}, 0)
        lane.ready, lane.timer = True, None
        assert thread.run_next()
        assert ran == ["k", "k"]


@pytest.mark.parametrize("kept", [True, False], ids=["committed", "rolled back"])
def test_a_finish_that_meets_an_open_enqueue_leaves_the_key_whatever_becomes_of_it(kept: bool) -> None:
    """rails/solid_queue#456: what was checked and not locked was not woken."""
    with turns(Ends(lambda: DONE)) as (thread, lane), connect("default", "host", {}) as host:
        host.execute("BEGIN")
        work.upsert(host.cursor(), [WorkRow(lane.name, "k", -1)])
        assert thread.run_next()
        assert queued(lane.name) == ["k"]
        host.execute("COMMIT" if kept else "ROLLBACK")
        assert ask("SELECT generation FROM compute_work WHERE kind = %s", lane.name) == [(2 if kept else 1,)]
        lane.cool.clear()
        lane.ready, lane.timer = True, None
        assert thread.run_next()
        assert queued(lane.name) == []


def test_a_run_longer_than_lease_and_visibility_timeout_runs_once(start_worker: Start) -> None:
    """pgqueuer#430, celery#5935: what ran for longer than a timeout was run again beside itself."""
    environment = {"PLANT_TTL_MS": "2000", "PLANT_TICK_MS": "300", "PLANT_VISIBILITY_S": "1"}
    first, second = start_worker(**environment), start_worker(**environment)
    ready(first, second)
    enqueue("plant.slow", "k:6")
    eventually(lambda: told("ended", "k:6") or told("aborted", "k:6"), 30)
    eventually(lambda: not queued("plant.slow"), 30)
    lost = any("are not trusted" in worker.text() or "joining anew" in worker.text() for worker in (first, second))
    # A machine that is too busy to beat loses the lease, and the key is run again: one at a time still.
    assert lost or [len(told(what, "k:6")) for what in ("started", "ended")] == [1, 1]


def test_a_handler_that_hogs_the_interpreter_keeps_its_lease_or_loses_it_safely(start_worker: Start) -> None:
    """procrastinate#1518, kopf: a loop without a pause kept the heartbeat from beating."""
    worker = start_worker()
    ready(worker)
    enqueue("plant.spins", "4")
    eventually(lambda: told("spun", "4"), 30)
    eventually(lambda: not queued("plant.spins"), 30)
    assert len(told("spun", "4")) == 1 or "joining anew" in worker.text()


def test_hints_are_acknowledged_early_and_never_wait_at_the_broker() -> None:
    """celery#6760, celery#5306: late acknowledgement and countdowns are what brokers redeliver."""
    from example_project.celery import app

    task = app.tasks["compute.drain"]
    assert (task.acks_late, task.ignore_result, task.expires) == (False, True, 30)
    assert app.conf.worker_prefetch_multiplier == 1
    assert app.conf.broker_connection_max_retries is None


def test_starting_and_stopping_again_and_again_ends_every_time() -> None:
    """controller-runtime#3538: a shutdown waited for a send that waited for the shutdown."""
    spec = ModuleSpec("t", "tests", "t", reconcilers=(Ends(lambda: DONE),))
    with registry.override(*registry.current().modules, spec):
        for number in range(20):
            runtime = Runtime(["controllers"])
            runtime.start()
            if number % 2:
                eventually(lambda member=runtime.memberships[0]: member.holds)
            began = monotonic()
            runtime.stop()
            assert monotonic() - began < conf.current().worker.grace_ms / 1_000
            assert ask("SELECT count(*) FROM compute_leases WHERE holder IS NOT NULL") == [(0,)]
            assert ask("SELECT count(*) FROM compute_workers") == [(0,)]
