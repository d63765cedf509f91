"""Nothing can be added to a dying tenant: calls and deletions made to meet, in both orders."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connections

from better_compute import ComputeError, compute
from better_compute.engine.contexts import served_port
from better_compute.store import transaction
from example_project.acme_widgets.models import Widget
from tests.engine.conftest import eventually
from tests.modules.tenancy.conftest import (
    OPERATOR,
    Holding,
    delete,
    in_thread,
    someone_waits_for_a_tenant,
    status,
    tick_until_quiet,
    told,
)

pytestmark = pytest.mark.django_db(transaction=True)


def hold(widget_id: str = "w1", tenant_id: str = "t1") -> Any:
    return compute.api.plugins.script.things.hold(OPERATOR, {"tenantId": tenant_id, "widgetId": widget_id})


def test_a_deletion_waits_for_a_call_that_is_adding_to_a_tenant_nobody_spoke_of_yet() -> None:
    adding, added = in_thread(hold)
    assert Holding.entered.wait(10)
    deleting, deleted = in_thread(lambda: delete("t1"))
    eventually(someone_waits_for_a_tenant)
    assert status("t1").phase == "active"
    Holding.go_on.set()
    adding.join(10)
    deleting.join(10)
    assert added[0].added == "w1"
    assert deleted[0].state == "deleting"
    # The first pass of the teardown already sees what the call added.
    tick_until_quiet()
    assert not Widget.objects.exists()
    assert status("t1").phase == "torn_down"


def test_a_call_waits_for_a_deletion_and_is_refused_by_the_state_it_then_reads() -> None:
    tenants = served_port("tenants")
    committed = threading.Event()
    held = threading.Event()

    def slow_delete() -> None:
        with transaction.transaction():
            tenants.delete("t1", reason="slow")
            held.set()
            assert committed.wait(10)

    deleting, deleted = in_thread(slow_delete)
    assert held.wait(10)
    adding, added = in_thread(hold)
    eventually(someone_waits_for_a_tenant)
    committed.set()
    deleting.join(10)
    adding.join(10)
    assert deleted == [None]
    assert isinstance(added[0], ComputeError)
    assert added[0].reason == "TENANT_DELETING"
    assert not Holding.entered.is_set()
    assert not Widget.objects.exists()


def test_a_call_goes_on_when_the_deletion_it_waited_for_rolls_back() -> None:
    tenants = served_port("tenants")
    held, go_on = threading.Event(), threading.Event()

    def delete_and_fail() -> None:
        with transaction.transaction():
            tenants.delete("t1", reason="not really")
            held.set()
            assert go_on.wait(10)
            raise ZeroDivisionError

    deleting, deleted = in_thread(delete_and_fail)
    assert held.wait(10)
    Holding.go_on.set()
    adding, added = in_thread(hold)
    eventually(someone_waits_for_a_tenant)
    go_on.set()
    deleting.join(10)
    adding.join(10)
    assert isinstance(deleted[0], ZeroDivisionError)
    assert added[0].added == "w1"


def test_a_deletion_gives_up_with_503_when_a_call_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compute_modules.tenancy.records.LOCK_WAIT", "100ms")
    adding, added = in_thread(hold)
    assert Holding.entered.wait(10)
    with pytest.raises(ComputeError) as caught:
        delete("t1")
    assert caught.value.code == "STORAGE_BUSY"
    Holding.go_on.set()
    adding.join(10)
    assert added[0].added == "w1"
    assert status("t1").phase == "active"


def test_of_deletions_at_once_one_begins_and_the_others_are_refused() -> None:
    start = threading.Barrier(4)

    def contend() -> Any:
        start.wait(10)
        return delete("t1")

    threads = [in_thread(contend) for _ in range(4)]
    for thread, _ in threads:
        thread.join(20)
    answers = [answers[0] for _, answers in threads]
    begun = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(begun) == 1
    assert {answer.reason for answer in answers if isinstance(answer, ComputeError)} == {"TENANT_DELETING"}
    assert len(told("tenant.deleting")) == 1


def test_whatever_calls_added_before_a_deletion_is_gone_after_its_teardown() -> None:
    start = threading.Barrier(4)

    def keep_adding(name: str) -> int:
        start.wait(10)
        for number in range(500):
            try:
                compute.api.plugins.acme.widgets.poke(OPERATOR, {"tenantId": "t1", "widgetId": f"{name}-{number}"})
            except ComputeError as error:
                return number if error.reason == "TENANT_DELETING" else -1
        raise AssertionError("never refused")

    adders = [in_thread(lambda name=name: keep_adding(name)) for name in ("a", "b", "c")]
    start.wait(10)
    eventually(lambda: Widget.objects.count() > 10)
    delete("t1")
    for thread, _ in adders:
        thread.join(20)
    counts = [answers[0] for _, answers in adders]
    assert all(isinstance(count, int) and count >= 0 for count in counts), counts
    assert Widget.objects.count() == sum(counts)
    tick_until_quiet()
    assert status("t1").phase == "torn_down"
    assert not Widget.objects.exists()


def test_a_reconciler_that_asks_the_port_holds_a_deletion_off_until_it_commits() -> None:
    tenants = served_port("tenants")
    with transaction.transaction():
        tenants.admit("t1", kind="mutation")
        deleting, deleted = in_thread(lambda: delete("t1"))
        eventually(someone_waits_for_a_tenant)
        Widget.objects.create(id="w1", tenant_id="t1")
    deleting.join(10)
    assert deleted[0].state == "deleting"
    with pytest.raises(ComputeError), transaction.transaction():
        tenants.admit("t1", kind="mutation")
    connections.close_all()


def test_a_reconciler_may_work_for_a_dying_tenant_when_it_says_so() -> None:
    """Erasing a machine takes work of its own: what ends something may go on where nothing may begin."""
    tenants = served_port("tenants")
    delete("t1")
    with transaction.transaction():
        with pytest.raises(ComputeError) as caught:
            tenants.admit("t1", kind="mutation")
        assert caught.value.reason == "TENANT_DELETING"
        tenants.admit("t1", kind="mutation", also_while=frozenset({"deleting"}))
    tick_until_quiet()
    with transaction.transaction(), pytest.raises(ComputeError) as caught:
        tenants.admit("t1", kind="mutation", also_while=frozenset({"deleting"}))
    assert caught.value.reason == "TENANT_TORN_DOWN"
