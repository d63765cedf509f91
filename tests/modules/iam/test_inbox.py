"""Tenants that are kept elsewhere: events are hints, each is taken once, and what counts is what is read again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from better_compute import ComputeError, ErrorCode, compute
from better_compute.store import transaction
from better_compute.testing import advance_clock
from compute_modules.iam import lifecycle, outside
from compute_modules.iam.outside import OutsideTenant, Receiver, TenantEvent
from compute_modules.iam.projection import projection
from tests.modules.iam.conftest import AUTHORIZER, OPERATOR, grant, may, poke, refused, rows, service
from tests.modules.tenancy.conftest import in_thread, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


@dataclass
class Home:
    """Where tenants are kept, outside: what it knows, whom it tells, and what it does wrong on demand."""

    known: dict[str, OutsideTenant] = field(default_factory=dict)
    inbox: Receiver | None = None
    binds: int = 0
    asked: list[str] = field(default_factory=list)
    away: bool = False
    refuses: bool = False
    events: int = 0

    def bind(self, inbox: Receiver) -> None:
        if self.refuses:
            raise ConnectionRefusedError("nobody there")
        self.inbox, self.binds = inbox, self.binds + 1

    def close(self) -> None:
        self.inbox = None

    def tenant(self, tenant_id: str) -> OutsideTenant | None:
        self.asked.append(tenant_id)
        if self.away:
            raise ConnectionError("the home is away")
        return self.known.get(tenant_id)

    def tenants(self, after: str, limit: int) -> Sequence[OutsideTenant]:
        if self.away:
            raise ConnectionError("the home is away")
        return [self.known[id] for id in sorted(self.known) if id > after][:limit]

    def set(self, id: str, state: Any = "active", parent: str | None = None, **more: Any) -> OutsideTenant:
        kind = more.pop("kind", "organisation" if parent is None else "project")
        self.known[id] = OutsideTenant(id=id, state=state, parent_id=parent, kind=kind, **more)
        return self.known[id]

    def tell(self, tenant_id: str, id: str = "") -> str:
        assert self.inbox is not None
        self.events += 1
        return self.inbox.receive(TenantEvent(id=id or f"e{self.events}", tenant_id=tenant_id, type="tenants:update"))


HOME = Home()


def make_home() -> Home:
    """What the settings name."""
    return HOME


@contextmanager
def following(path: str = f"{__name__}.make_home") -> Iterator[None]:
    iam = {**settings.COMPUTE.get("iam", {}), "TENANT_SOURCE": path}
    with override_settings(COMPUTE={**settings.COMPUTE, "IAM": AUTHORIZER, "iam": iam}):
        yield


@pytest.fixture
def home(world: None) -> Iterator[Home]:
    """A home that the inbox is bound to; the first sweep has run."""
    HOME.__init__()  # type: ignore[misc]
    with following():
        lifecycle.start(compute.context("iam"))
        tick()
        HOME.asked.clear()
        yield HOME
        lifecycle.stop()


def tick() -> int:
    """Batches of the follower until nothing is due."""
    total = 0
    while ran := compute.jobs["iam.tenants"].tick():
        total += ran
    return total


def sweep() -> None:
    """The sweep's turn."""
    advance_clock(timedelta(minutes=6))
    tick()


def state(tenant_id: str) -> str:
    return str(compute.api.tenants.get(OPERATOR, {"tenantId": tenant_id}).state)


def place(tenant_id: str) -> Any:
    return compute.api.tenant_tree.get(OPERATOR, {"tenantId": tenant_id})


def problems() -> dict[str, str]:
    return dict(rows("SELECT tenant_id, problem FROM compute_iam_outside WHERE problem <> ''"))


def findings(check: str) -> list[str]:
    with transaction.transaction():
        return [each.message for each in compute.self_check().findings if each.check == check]


class TestBinding:
    def test_start_binds_once_however_often_it_is_called_and_stop_lets_go(self, home: Home) -> None:
        lifecycle.start(compute.context("iam"))
        assert home.binds == 1
        lifecycle.stop()
        assert home.inbox is None
        lifecycle.start(compute.context("iam"))
        assert home.binds == 2

    def test_a_source_that_refuses_keeps_nobody_from_serving_and_is_a_finding(self, home: Home) -> None:
        lifecycle.stop()
        home.refuses = True
        lifecycle.start(compute.context("iam"))
        assert findings("iam.inbox-unbound") == [
            "The tenant source could not be bound in this process: ConnectionRefusedError: nobody there"
        ]
        home.set("corp")
        sweep()
        assert place("corp").kind == "organisation"

    @pytest.mark.parametrize("path", ["nowhere.at_all", "builtins.object", f"{__name__}.nothing_there", "builtins.len"])
    def test_a_path_to_no_source_stops_the_start_and_names_the_setting(self, path: str) -> None:
        with following(path):
            error = refused(lambda: lifecycle.start(compute.context("iam")))
        assert error.code is ErrorCode.INVALID_CONFIG
        assert "TENANT_SOURCE" in error.message
        assert path in error.message


class TestHints:
    def test_an_event_makes_a_tenant_here_with_all_that_stand_above_it(self, home: Home) -> None:
        home.set("corp", name="Corp Inc.")
        home.set("lab", parent="corp")
        assert home.tell("lab") == "new"
        tick()
        assert place("lab").path == ["root", "corp", "lab"]
        assert place("corp").name == "Corp Inc."
        assert [(each["tenant"], each["subject"]) for each in told("iam.tenant-created")][-2:] == [
            ("root", "tenant/corp"),
            ("corp", "tenant/lab"),
        ]

    def test_the_projection_follows_at_the_next_request(self, home: Home) -> None:
        bob = service("bob")
        grant("bob", "root", "viewer", inherit=True)
        assert may(bob, "corp") == "NOT_FOUND"
        home.set("corp")
        home.tell("corp")
        tick()
        assert may(bob, "corp") == "yes"

    def test_nothing_is_taken_from_the_event_but_whom_to_ask_about(self, home: Home) -> None:
        home.set("corp", "active")
        assert home.inbox is not None
        home.inbox.receive({"id": "x", "tenantId": "corp", "type": "tenants:delete", "state": "deleted", "more": [1]})
        tick()
        assert state("corp") == "active"

    @pytest.mark.parametrize(("outside_state", "here"), [("suspended", "suspended"), ("pending", "suspended")])
    def test_suspended_outside_is_suspended_here_and_resumed_with_it(
        self, home: Home, outside_state: str, here: str
    ) -> None:
        home.set("corp", outside_state)
        home.tell("corp")
        tick()
        assert state("corp") == here
        assert refused(lambda: poke(OPERATOR, "corp")).reason == "TENANT_SUSPENDED"
        home.set("corp", "active")
        home.tell("corp")
        tick()
        assert state("corp") == "active"

    def test_deleted_outside_is_torn_down_here_with_all_below(self, home: Home) -> None:
        home.set("corp")
        home.set("lab", parent="corp")
        home.tell("lab")
        tick()
        home.set("corp", "deleted")
        home.tell("corp")
        tick()
        assert state("corp") == "deleting"
        for _ in range(6):
            advance_clock(timedelta(seconds=31))
            compute.jobs["tenancy"].tick()
            compute.jobs["tenancy"].tick()
        assert (state("lab"), state("corp")) == ("torn_down", "torn_down")
        assert len(told("tenant.torn-down")) == 2

    def test_events_out_of_order_end_where_the_tenant_is_now(self, home: Home) -> None:
        """The deletion is told before the making, the resuming before the suspending."""
        home.set("corp", "suspended")
        home.tell("corp", "second")
        tick()
        home.set("corp", "active")
        home.tell("corp", "third")
        tick()
        home.tell("corp", "first")
        tick()
        assert state("corp") == "active"
        assert [each["tenant"] for each in told("tenant.suspended")] == ["corp"]

    def test_an_event_that_comes_again_asks_nobody(self, home: Home) -> None:
        home.set("corp")
        assert home.tell("corp", "e1") == "new"
        tick()
        asked = len(home.asked)
        assert [home.tell("corp", "e1") for _ in range(3)] == ["known"] * 3
        assert tick() == 0
        assert len(home.asked) == asked

    def test_the_same_event_at_once_in_several_threads_is_taken_once(self, home: Home) -> None:
        home.set("corp")
        start = threading.Barrier(4)

        def receive() -> str:
            start.wait(10)
            return home.tell("corp", "same")

        threads = [in_thread(receive) for _ in range(4)]
        for thread, _ in threads:
            thread.join(20)
        assert sorted(answers[0] for _, answers in threads) == ["known", "known", "known", "new"]

    def test_an_event_that_was_rolled_back_with_its_caller_is_new_when_it_comes_again(self, home: Home) -> None:
        home.set("corp")
        with pytest.raises(ZeroDivisionError), transaction.transaction():
            home.tell("corp", "e1")
            _ = 1 / 0
        assert home.tell("corp", "e1") == "new"

    def test_many_events_of_a_tenant_are_one_question(self, home: Home) -> None:
        home.set("corp")
        for _ in range(20):
            home.tell("corp")
        tick()
        assert home.asked == ["corp"]

    def test_ids_are_forgotten_after_a_month_and_a_replay_from_before_does_no_harm(self, home: Home) -> None:
        home.set("corp")
        home.tell("corp", "old")
        tick()
        advance_clock(timedelta(days=31))
        sweep()
        assert rows("SELECT count(*) FROM compute_iam_inbox") == [(0,)]
        assert home.tell("corp", "old") == "new"
        tick()
        assert (state("corp"), problems()) == ("active", {})


class TestPoison:
    @pytest.mark.parametrize(
        "event",
        [
            {},
            {"id": "", "tenantId": "corp"},
            {"id": "a"},
            {"id": "a", "tenantId": "corp\n"},
            {"id": "a", "tenantId": 7},
            {"id": "a" * 256, "tenantId": "corp"},
            {"id": "a\x00", "tenantId": "corp"},
            {"id": "a\ud800", "tenantId": "corp"},
            None,
            "an event",
            [1],
            Ellipsis,
            TenantEvent(id="a", tenant_id=""),
        ],
        ids=lambda event: repr(event)[:24],
    )
    def test_what_is_no_event_is_a_finding_and_delays_no_other(self, home: Home, event: Any) -> None:
        assert home.inbox is not None
        assert home.inbox.receive(event) == "poison"
        assert home.inbox.receive(event) in ("poison",)
        home.set("corp")
        home.tell("corp")
        tick()
        assert state("corp") == "active"
        (message,) = findings("iam.inbox-poison")
        assert "is no event" in message

    @pytest.mark.parametrize(
        ("known", "said"),
        [
            ([("corp", "corp", "organisation")], "stands below itself"),
            ([("corp", "b", "organisation"), ("b", "corp", "organisation")], "stands below itself"),
            ([("corp", "nobody", "project")], "parent 'nobody' is not there"),
            ([("corp", None, "project")], "cannot stand below the root"),
            (
                [
                    ("corp", "d1", "project"),
                    *((f"d{n}", f"d{n + 1}", "organisation") for n in range(1, 8)),
                    ("d8", None, "organisation"),
                ],
                "stands deeper than 8",
            ),
        ],
        ids=["itself", "cycle", "no parent", "wrong kind", "depth 9"],
    )
    def test_a_tenant_that_cannot_be_as_it_is_outside_is_a_finding_by_name(
        self, home: Home, known: list[tuple[str, str | None, str]], said: str
    ) -> None:
        for id, parent, kind in known:
            home.set(id, parent=parent, kind=kind)
        home.tell("corp")
        tick()
        assert said in problems()["corp"]
        (message,) = findings("iam.tenant-not-followed")
        assert "'corp'" in message
        assert refused(lambda: place("corp")).code is ErrorCode.NOT_FOUND
        home.known.clear()
        home.set("corp")
        sweep()
        assert problems() == {}
        assert place("corp").path == ["root", "corp"]

    @pytest.mark.parametrize(
        "answer",
        [
            OutsideTenant(id="other", state="active"),
            OutsideTenant(id="corp", state="gone"),  # type: ignore[arg-type]
            OutsideTenant(id="corp", state="active", parent_id="\n"),
            "corp",
        ],
        ids=["another", "no state", "no parent id", "no tenant"],
    )
    def test_an_answer_that_makes_no_sense_changes_nothing(self, home: Home, answer: Any) -> None:
        home.known["corp"] = answer
        home.tell("corp")
        tick()
        assert list(problems()) == ["corp"]
        assert rows("SELECT count(*) FROM compute_iam_tenants WHERE id = 'corp'") == [(0,)]

    def test_nothing_is_made_below_what_is_deleted_outside(self, home: Home) -> None:
        home.set("corp", "deleted")
        home.set("lab", parent="corp")
        home.tell("lab")
        tick()
        assert "stands below 'corp', which is deleted" in problems()["lab"]
        assert rows("SELECT count(*) FROM compute_iam_tenants WHERE id IN ('corp', 'lab')") == [(0,)]

    def test_a_place_that_differs_is_a_finding_and_never_changed(self, home: Home) -> None:
        home.set("own", parent=None, kind="organisation")
        home.tell("own")
        tick()
        assert "never changes its place" in problems()["own"]
        assert place("own").path == ["root", "org", "own"]

    def test_what_is_gone_here_never_comes_back(self, home: Home) -> None:
        home.set("corp")
        home.tell("corp")
        tick()
        compute.api.tenants.delete(OPERATOR, {"tenantId": "corp", "reason": "r"})
        sweep()
        assert "which it never leaves" in problems()["corp"]
        assert state("corp") == "deleting"


class TestSweep:
    def test_it_heals_events_that_were_lost(self, home: Home) -> None:
        home.set("corp")
        home.set("lab", parent="corp")
        sweep()
        assert place("lab").path == ["root", "corp", "lab"]
        home.set("lab", "suspended", parent="corp")
        home.set("corp", name="Renamed")
        sweep()
        assert (state("lab"), place("corp").name) == ("suspended", "Renamed")
        home.set("lab", "deleted", parent="corp")
        sweep()
        assert state("lab") in ("deleting", "torn_down")

    def test_it_asks_only_about_what_differs(self, home: Home) -> None:
        for number in range(20):
            home.set(f"t{number}")
        sweep()
        home.asked.clear()
        home.set("t7", "suspended")
        sweep()
        assert home.asked == ["t7"]
        home.asked.clear()
        sweep()
        assert home.asked == []

    def test_it_walks_all_pages(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("compute_modules.iam.reconcilers._PAGE", 3)
        for number in range(10):
            home.set(f"t{number}")
        sweep()
        assert rows("SELECT count(*) FROM compute_iam_tenants WHERE id LIKE 't_'") == [(10,)]
        del home.known["t4"]
        sweep()
        assert list(problems()) == ["t4"]

    def test_a_tenant_that_is_missing_outside_is_a_finding_and_never_deleted_for_that(self, home: Home) -> None:
        home.set("corp")
        sweep()
        home.known.clear()
        sweep()
        assert state("corp") == "active"
        assert "not there any more" in problems()["corp"]
        home.set("corp")
        sweep()
        assert problems() == {}

    def test_tenants_that_only_stand_here_are_left_alone(self, home: Home) -> None:
        sweep()
        assert home.asked == []
        assert (state("own"), problems()) == ("active", {})

    def test_the_root_is_nobody_elses(self, home: Home) -> None:
        home.set("root", "deleted")
        home.tell("root")
        sweep()
        assert (state("root"), problems()) == ("active", {})

    def test_a_suspension_made_here_outlasts_what_is_said_outside(self, home: Home) -> None:
        home.set("corp")
        sweep()
        compute.api.tenants.suspend(OPERATOR, {"tenantId": "corp", "reason": "unpaid"})
        sweep()
        home.tell("corp")
        tick()
        assert state("corp") == "suspended"

    def test_ids_out_of_order_stop_the_sweep_and_not_the_events(
        self, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(home, "tenants", lambda after, limit: [replace_id("b"), replace_id("a")])
        advance_clock(timedelta(minutes=6))
        compute.jobs["iam.tenants"].tick()
        assert rows("SELECT attempts FROM compute_work WHERE kind = 'iam.tenants' AND key = '*'")[0][0] > 0
        home.set("corp")
        home.tell("corp")
        tick()
        assert state("corp") == "active"

    def test_a_home_that_is_away_is_asked_again_and_nothing_is_lost(self, home: Home) -> None:
        home.set("corp")
        home.away = True
        home.tell("corp")
        compute.jobs["iam.tenants"].tick()
        assert rows("SELECT count(*) FROM compute_work WHERE kind = 'iam.tenants' AND key = 'corp'") == [(1,)]
        home.away = False
        advance_clock(timedelta(minutes=6))
        tick()
        assert (state("corp"), problems()) == ("active", {})


def replace_id(id: str) -> OutsideTenant:
    return OutsideTenant(id=id, state="active")


def test_a_change_while_the_answer_is_on_its_way_is_not_lost(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home answers as it was; its next event dirties the key of the run that still works with the old answer."""
    home.set("corp")
    tenant = home.tenant

    def slow(tenant_id: str) -> OutsideTenant | None:
        answer = tenant(tenant_id)
        monkeypatch.setattr(home, "tenant", tenant)
        home.set("corp", "suspended")
        in_thread(lambda: home.tell("corp", "later"))[0].join(10)
        return answer

    monkeypatch.setattr(home, "tenant", slow)
    home.tell("corp")
    tick()
    assert state("corp") == "suspended"


def test_a_follower_that_lost_its_lease_changes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from better_compute import LeaseLost

    home.set("corp")
    tenant = home.tenant

    def stolen(tenant_id: str) -> OutsideTenant | None:
        rows("UPDATE compute_leases SET epoch = epoch + 1, holder = NULL WHERE name = 'singleton:iam.tenants'")
        return tenant(tenant_id)

    monkeypatch.setattr(home, "tenant", stolen)
    home.tell("corp")
    with suppress(LeaseLost, ComputeError):
        compute.jobs["iam.tenants"].tick()
    assert rows("SELECT count(*) FROM compute_iam_tenants WHERE id = 'corp'") == [(0,)]
    assert rows("SELECT count(*) FROM compute_work WHERE kind = 'iam.tenants' AND key = 'corp'") == [(1,)]


def test_the_source_is_made_once_for_a_process(home: Home) -> None:
    assert outside.source(compute.context("iam")) is home
    assert projection.known.version >= 0
