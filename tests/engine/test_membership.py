"""A membership compares what it holds with the database at every beat, so that no lost answer costs a lease."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import psycopg
import pytest
from django.db import connection
from msgspec import structs

from better_compute import conf
from better_compute.contract.contexts import LeaseInfo, ReconcileContext
from better_compute.contract.errors import LeaseLost
from better_compute.contract.outcomes import DONE, Outcome
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine.membership import Membership
from better_compute.store import fence, leases, members

pytestmark = pytest.mark.django_db

LEASE = "singleton:t.kept"


class Kept(Reconciler):
    name = "t.kept"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return DONE


@pytest.fixture
def cursor() -> Iterator[Any]:
    with connection.cursor() as cursor:
        yield cursor


@pytest.fixture
def member(cursor: Any) -> Membership:
    member = Membership("controllers", {"t.kept": Kept()})
    member.join(cursor)
    return member


def lose_the_answer(monkeypatch: pytest.MonkeyPatch, store: ModuleType, name: str) -> None:
    """Have ``name`` commit, and its answer be lost with the connection, once."""
    statement = getattr(store, name)

    def lost(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(store, name, statement)
        statement(*arguments, **named)
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(store, name, lost)


def runs(cursor: Any, member: Membership) -> bool:
    """Whether a run of the member would pass the fence."""
    [hold] = member.holds_of(member.reconcilers["t.kept"])
    try:
        fence.require(cursor, hold.lease)
    except LeaseLost:
        return False
    return True


def test_a_lease_whose_taking_was_not_answered_is_held_after_the_next_beat(
    cursor: Any, member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer(monkeypatch, leases, "acquire")
    with pytest.raises(psycopg.OperationalError):
        member.balance(cursor)
    member.distrust()
    assert member.renew(cursor)
    member.balance(cursor)
    assert runs(cursor, member)


def test_a_lease_whose_giving_back_was_not_answered_is_forgotten_and_taken_anew(
    cursor: Any, member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    member.balance(cursor)
    lose_the_answer(monkeypatch, leases, "release")
    with pytest.raises(psycopg.OperationalError):
        member.give_back(cursor, [LEASE])
    member.distrust()
    assert member.renew(cursor)
    assert member.holds == {}
    member.balance(cursor)
    assert runs(cursor, member)


def test_a_hold_of_another_epoch_is_replaced_and_its_runs_are_told(cursor: Any, member: Membership) -> None:
    member.balance(cursor)
    old = member.holds[LEASE]
    member.holds[LEASE] = replace(old, lease=LeaseInfo(LEASE, member.id, 0))
    assert member.renew(cursor)
    assert runs(cursor, member)
    assert old.abort.aborted


def test_a_lease_taken_by_another_is_not_trusted_again(cursor: Any, member: Membership) -> None:
    member.balance(cursor)
    held = member.holds[LEASE]
    cursor.execute("UPDATE compute_leases SET holder = 'other', epoch = epoch + 1 WHERE name = %s", [LEASE])
    assert member.renew(cursor)
    assert (member.holds, held.abort.aborted) == ({}, True)


def test_an_orphan_that_others_should_hold_is_given_back(
    cursor: Any, member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_answer(monkeypatch, leases, "acquire")
    with pytest.raises(psycopg.OperationalError):
        member.balance(cursor)
    monkeypatch.setattr(Membership, "wanted", lambda self, members: set())
    assert member.renew(cursor)
    member.balance(cursor)
    assert leases.held(cursor) == {}


def test_a_trusted_hold_keeps_its_signal_over_a_beat(cursor: Any, member: Membership) -> None:
    member.balance(cursor)
    hold = member.holds[LEASE]
    assert member.renew(cursor)
    assert member.holds[LEASE] is hold


def test_runs_asked_to_end_do_and_later_ones_start_under_the_same_epoch(cursor: Any, member: Membership) -> None:
    member.balance(cursor)
    hold = member.holds[LEASE]
    member.distrust()
    assert member.renew(cursor)
    assert hold.abort.aborted
    assert not member.holds[LEASE].abort.aborted
    assert member.holds[LEASE].lease == hold.lease


def test_a_registration_that_was_not_answered_is_begun_again(cursor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    member = Membership("controllers", {"t.kept": Kept()})
    lose_the_answer(monkeypatch, members, "register")
    with pytest.raises(psycopg.OperationalError):
        member.join(cursor)
    assert member.id == ""
    member.join(cursor)
    assert member.take(cursor, [LEASE]) == {LEASE: 1}


@pytest.mark.parametrize(("pooled", "named"), [(True, False), (False, True)])
def test_a_member_behind_a_pooler_names_no_backend_from_its_first_row_on(
    cursor: Any, pooled: bool, named: bool
) -> None:
    """The backend is the pooler's: were it gone, others would take the member for dead."""
    settings = structs.replace(conf.current().worker, pooled=pooled)
    member = Membership("controllers", {"t.kept": Kept()}, settings=settings)
    found = []
    for act in (member.join, member.renew):
        act(cursor)
        cursor.execute("SELECT backend_pid IS NOT NULL FROM compute_workers WHERE id = %s", [member.id])
        found.append(cursor.fetchone()[0])
    assert found == [named, named]
