"""A lane's floors: what a pass need not read again, and what they must never hide.

Each claim takes passes by hand, as :class:`Turns` does, without the look from the start that every poll makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings, strategies as st

from better_compute import conf
from better_compute.contract.contexts import ReconcileContext
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, Outcome
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine.dispatch import FLOOR_MARGIN, Dispatcher, InFlight, Lane
from better_compute.engine.holds import Hold
from better_compute.engine.membership import Membership
from better_compute.engine.shards import shard_of
from better_compute.engine.turns import Turns
from better_compute.store import ends, passes, work
from better_compute.store.claims import NO_FLOOR, Claimed
from better_compute.store.ends import Ended
from better_compute.store.passes import Found
from better_compute.store.session import Session
from better_compute.store.work import WorkRow

from .conftest import ask

pytestmark = pytest.mark.django_db(transaction=True)

KIND = "t.floors"
INSTANT = timedelta(microseconds=1)
#: Two keys on each of two shards.
SHARDS = (shard_of("a"), shard_of("b"))


class Nothing(Reconciler):
    name, shard_by = KIND, "node"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return DONE


@dataclass
class Passes:
    """Passes over one lane."""

    cursor: Any
    lane: Lane
    member: Membership
    batch: int = 100
    kept: list[tuple[Claimed, Hold]] = field(default_factory=list)

    def next(self) -> list[Claimed]:
        """Claim what the next pass finds, and remember how far it looked."""
        look = self.lane.look(self.batch)
        found = passes.claim_noted(self.cursor, self.member.id, look, [])
        self.lane.raise_floors(look, found)
        self.at = found.at
        return found.claimed

    def keys(self) -> list[str]:
        return sorted(claimed.key for claimed in self.next())

    def hold(self, claimed: Claimed) -> Hold:
        hold = self.member.hold_for(self.lane.reconciler, claimed.shard)
        assert hold is not None
        return hold

    def finish(self, claims: Sequence[Claimed]) -> list[str]:
        """Finish keys; those that stay pull the floor back, as a turn has them do. Returns which those are."""
        ended = [Ended(each, self.hold(each).lease.name, self.hold(each).lease.epoch) for each in claims]
        deleted = ends.finish_done(self.cursor, self.member.id, KIND, ended)
        left = [each for each in claims if each.key not in deleted]
        self.lane.pull_floors((each, self.hold(each)) for each in left)
        return [each.key for each in left]


@contextmanager
def passing(batch: int = 100) -> Iterator[Passes]:
    reconciler = Nothing()
    member = Membership("controllers", {KIND: reconciler})
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM compute_work WHERE kind = %s", [KIND])
        member.join(cursor)
        member.balance(cursor)
        lane = Lane(ModuleSpec("t", "tests", "t", reconcilers=(reconciler,)), reconciler, member, cost=1e-4)
        try:
            yield Passes(cursor, lane, member, batch)
        finally:
            member.leave(cursor)


def put(key: str, at: datetime) -> None:
    """A row that is due since ``at``, committed now."""
    work_row = "INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at) VALUES (%s, %s, %s, %s, %s)"
    ask(work_row, KIND, key, shard_of(key), at, at)


def enqueue(*keys: str) -> None:
    with connection.cursor() as cursor:
        work.upsert(cursor, [WorkRow(KIND, key, shard_of(key)) for key in keys])


def test_a_pass_does_not_read_again_what_the_one_before_looked_through() -> None:
    with passing() as run:
        assert run.keys() == []
        at = run.at
        run.next()
        floors = {hold.floors[KIND].at for hold in run.lane.holds()}
        assert min(floors) >= at - FLOOR_MARGIN


def test_a_key_committed_a_margin_late_is_found_and_a_later_one_waits_for_the_poll() -> None:
    with passing() as run:
        run.next()
        put("a", run.at - FLOOR_MARGIN)
        put("b", run.at - FLOOR_MARGIN - INSTANT)
        assert run.keys() == ["a"]
        run.lane.from_the_start = True
        assert run.keys() == ["a", "b"]


def test_keys_due_at_the_very_moment_of_the_floor_are_found() -> None:
    with passing(batch=8) as run:
        run.next()
        moment = run.at
        keys = [key for number in range(2_000) if shard_of(key := f"k{number}") == SHARDS[0]][:5]
        for key in keys:
            put(key, moment)
        ran: list[str] = []
        while claims := run.next():
            # One a shard and pass, so each of them is the floor of the next.
            assert len(claims) == 1
            ran += [each.key for each in claims]
            assert run.finish(claims) == []
        assert sorted(ran) == sorted(keys)


def test_a_key_left_behind_pulls_the_floor_back_to_itself() -> None:
    with passing() as run:
        run.next()
        put("a", run.at - FLOOR_MARGIN)
        claims = run.next()
        enqueue("a")
        run.next()
        assert run.finish(claims) == ["a"]
        assert run.keys() == ["a"]


def test_a_pulled_floor_of_one_shard_leaves_the_others() -> None:
    with passing() as run:
        run.next()
        put("a", run.at - FLOOR_MARGIN)
        claims = run.next()
        run.next()
        floors = {hold.shard: hold.floors[KIND] for hold in run.lane.holds()}
        run.lane.pull_floors([(each, run.hold(each)) for each in claims])
        moved = {hold.shard for hold in run.lane.holds() if hold.floors[KIND] != floors[hold.shard]}
        assert moved == {SHARDS[0]}


def test_an_enqueue_of_a_parked_key_is_found_whatever_the_floor() -> None:
    with passing() as run:
        run.next()
        put("a", run.at + timedelta(hours=1))
        assert run.keys() == []
        enqueue("a")
        assert run.keys() == ["a"]


def test_what_cools_is_looked_for_below_the_floor() -> None:
    with passing() as run:
        run.next()
        put("a", run.at - FLOOR_MARGIN - INSTANT)
        run.lane.cool_down({"other": 10.0}, [])
        assert run.keys() == ["a"]


def test_a_lease_taken_anew_has_no_floor() -> None:
    with passing() as run:
        run.next()
        put("a", run.at - FLOOR_MARGIN - INSTANT)
        lease = run.hold(Claimed(0, "a", SHARDS[0], 1, 0, None, run.at, False)).lease.name
        run.member.give_back(run.cursor, [lease])
        run.member.take(run.cursor, [lease])
        assert run.keys() == ["a"]


def test_a_pass_under_way_while_a_floor_is_pulled_raises_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with passing() as run:
        run.next()
        put("a", run.at - FLOOR_MARGIN)
        claims = run.next()
        claim = passes.claim_noted

        def meanwhile(*arguments: Any) -> Found:
            found = claim(*arguments)
            # Another thread ends with a key that was dirtied, after this pass has looked past it.
            run.lane.running.pop("a", None)
            run.lane.pull_floors([(each, run.hold(each)) for each in claims])
            return found

        run.lane.running["a"] = InFlight(claims[0].id, "lease", run.at)
        monkeypatch.setattr(passes, "claim_noted", meanwhile)
        session = Session("default", "test-floors", {})
        try:
            Turns(Dispatcher([run.lane], conf.Worker()), session, conf.Worker())._pass(run.lane)
        finally:
            session.close()
        monkeypatch.undo()
        assert run.keys() == ["a"]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("enqueue"), st.sets(st.sampled_from("abcdefgh"), min_size=1)),
            st.tuples(st.just("late"), st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 500))),
            st.tuples(st.just("pass"), st.booleans()),
            st.tuples(st.just("finish"), st.booleans()),
        ),
        max_size=14,
    ),
    st.sampled_from([1, 2, 100]),
)
@settings(max_examples=40)
def test_no_floor_hides_a_due_key(steps: list[tuple[str, Any]], batch: int) -> None:
    """Whatever is enqueued, claimed, dirtied and finished: passes that end with nothing found leave nothing due."""
    with passing(batch) as run:
        run.next()
        held: list[Claimed] = []
        for what, how in steps:
            if what == "enqueue":
                enqueue(*how)
            elif what == "late":
                key, milliseconds = how
                if not ask("SELECT 1 FROM compute_work WHERE kind = %s AND key = %s", KIND, key):
                    put(key, run.at - timedelta(milliseconds=milliseconds))
            elif what == "pass":
                held += [each for each in run.next() if each.key not in run.lane.running]
                run.lane.running.update({each.key: InFlight(each.id, "lease", run.at) for each in held})
            else:
                if how and held:
                    enqueue(held[0].key)
                run.lane.running.clear()
                run.finish(held)
                held = []
        run.lane.running.clear()
        run.finish(held)
        for _ in range(100):
            claims = run.next()
            if not claims:
                break
            run.finish(claims)
        left = ask("SELECT key FROM compute_work WHERE kind = %s AND not_before <= compute_now()", KIND)
        assert left == []


@pytest.mark.parametrize("rule", ["pulls back", "looks back"])
def test_without_a_rule_a_floor_hides_a_key(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ablation: the claims above can tell."""
    if rule == "pulls back":
        monkeypatch.setattr(Lane, "pull_floors", lambda lane, left: list(left))
        told = test_a_key_left_behind_pulls_the_floor_back_to_itself
    else:
        monkeypatch.setattr("better_compute.engine.dispatch.FLOOR_MARGIN", timedelta(0))
        told = test_a_key_committed_a_margin_late_is_found_and_a_later_one_waits_for_the_poll
    with pytest.raises(AssertionError):
        told()


def test_a_fresh_lane_looks_from_the_start() -> None:
    with passing() as run:
        assert set(run.lane.look(10).floors) == {NO_FLOOR}
