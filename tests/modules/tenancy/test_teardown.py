"""Passes of the teardown: which hooks are called, when it ends, and what it tells meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from better_compute import DONE, SYNC_AGAIN, ComputeError, ErrorCode, ModuleContext, Periodic, compute, registry
from better_compute.contract import names
from better_compute.testing import advance_clock
from compute_modules.tenancy.reconcilers import SWEEP, TenancyReconciler
from example_project.acme_widgets.models import Widget
from tests.modules.tenancy.conftest import Script, delete, done, hosting, status, tick, tick_until_quiet, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("swept")]


def torn_down(tenant_id: str = "t1") -> bool:
    return bool(status(tenant_id).phase == "torn_down")


def sweep() -> int:
    """Let the sweep come due, and run what it wakes."""
    advance_clock(timedelta(seconds=31))
    return tick_until_quiet()


def widgets(tenant_id: str, count: int) -> None:
    Widget.objects.bulk_create(Widget(id=f"{tenant_id}-{number:06}", tenant_id=tenant_id) for number in range(count))


class TestPasses:
    def test_every_hosted_module_is_asked_plugins_included_in_hosted_order(self) -> None:
        order: list[str] = []

        def noting(name: str) -> Script:
            return Script(name, lambda ctx, tenant: order.append(ctx.module) or DONE)

        delete("t1")
        widgets("t1", 1)
        with hosting(noting("one"), noting("two")):
            tick_until_quiet()
        assert order == ["one", "two"]
        assert not Widget.objects.exists()
        assert torn_down()

    def test_a_teardown_in_which_all_answer_done_at_once_takes_one_pass(self) -> None:
        script = Script("one", done)
        with hosting(script):
            delete("t1")
            tick_until_quiet()
        assert script.calls == ["t1"]
        assert status("t1").passes == 1

    def test_hooks_that_answered_done_are_called_again_in_every_pass(self) -> None:
        first, second = Script("one", done), Script("two", lambda ctx, tenant: SYNC_AGAIN)
        with hosting(first, second):
            delete("t1")
            tick_until_quiet()
            sweep()
            sweep()
            # The second pass follows the first at once: who waits alone may have waited for the others.
            assert first.calls == ["t1"] * 4
            assert not torn_down()
            second.hook = done
            sweep()
            assert torn_down()
        assert len(first.calls) == 5

    def test_done_in_different_passes_is_not_done_in_one(self) -> None:
        """Two hooks that take turns at SYNC_AGAIN have each answered DONE, and yet the teardown does not end."""
        turn = {"n": 0}

        def alternating(parity: int) -> Any:
            def hook(ctx: ModuleContext, tenant_id: str) -> Any:
                return DONE if turn["n"] % 2 == parity else SYNC_AGAIN

            return hook

        with hosting(Script("one", alternating(0)), Script("two", alternating(1))):
            delete("t1")
            tick_until_quiet()
            for _ in range(4):
                turn["n"] += 1
                sweep()
            assert not torn_down()
        assert told("tenant.torn-down") == []

    def test_a_large_tenant_goes_in_bounded_steps_that_follow_each_other_at_once(self) -> None:
        widgets("t1", 250)
        widgets("t2", 5)
        delete("t1")
        tick()
        assert Widget.objects.filter(tenant_id="t1").count() == 150
        tick_until_quiet()
        assert torn_down()
        # 100, 100, 50 and DONE with the last; acme answers SYNC_AGAIN only for a full batch.
        assert status("t1").passes == 3
        assert Widget.objects.filter(tenant_id="t2").count() == 5

    def test_what_merely_waits_is_asked_again_by_the_sweep_and_not_in_a_loop(self) -> None:
        script = Script("one", lambda ctx, tenant: SYNC_AGAIN)
        with hosting(script):
            delete("t1")
            tick_until_quiet()
            assert len(script.calls) == 2
            advance_clock(timedelta(seconds=15))
            tick_until_quiet()
            assert len(script.calls) == 2
            sweep()
            assert len(script.calls) == 3

    def test_a_tenant_named_sweep_is_torn_down_like_any_other(self) -> None:
        delete("sweep")
        tick_until_quiet()
        assert [event["tenant"] for event in told("tenant.torn-down")] == ["sweep"]

    def test_no_tenant_can_have_the_sweeps_key_as_its_name(self) -> None:
        with pytest.raises(ComputeError) as caught:
            delete(SWEEP)
        assert caught.value.code is ErrorCode.INVALID_INPUT
        assert not names.matches(names.TENANT_ID, SWEEP)

    def test_the_sweep_finds_a_tenant_whose_wake_up_was_lost(self) -> None:
        delete("t1")
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM compute_work")
        sweep()
        assert torn_down()

    def test_the_sweep_comes_every_thirty_seconds(self) -> None:
        assert tuple(TenancyReconciler.periodic) == (Periodic("*", every="30s"),)

    def test_a_key_of_a_tenant_that_is_not_deleted_needs_nothing(self) -> None:
        script = Script("one", done)
        from better_compute.store import transaction
        from better_compute.store.work import WorkRow

        with hosting(script):
            with transaction.transaction():
                transaction.enqueue([WorkRow("tenancy", "t9", -1)])
            tick_until_quiet()
        assert script.calls == []
        assert status("t9").phase == "active"


class TestHooks:
    def test_each_hook_has_a_transaction_of_its_own(self) -> None:
        """What one hook wrote stays when a later one raises, and what a raising one wrote does not."""

        def write_and_raise(ctx: ModuleContext, tenant_id: str) -> Any:
            ctx.events.publish(type="two.ghost", tenant_id=tenant_id, subject="ghost/1", data={})
            raise ValueError("boom")

        def write(ctx: ModuleContext, tenant_id: str) -> Any:
            ctx.events.publish(type="one.kept", tenant_id=tenant_id, subject="kept/1", data={})
            return DONE

        with hosting(Script("one", write), Script("two", write_and_raise)):
            delete("t1")
            tick_until_quiet()
        assert len(told("one.kept")) == 1
        assert told("two.ghost") == []

    def test_a_hook_that_raises_is_a_blocker_by_name_with_its_mend_and_stops_no_other(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(ctx: ModuleContext, tenant_id: str) -> Any:
            raise ValueError("password=hunter2")

        last = Script("two", done)
        with hosting(Script("one", fail), last):
            delete("t1")
            tick_until_quiet()
            assert last.calls == ["t1"]
            told_status = status("t1")
            assert told_status.phase == "blocked"
            (blocker,) = told_status.blockers
            assert (blocker.module, blocker.answer, blocker.passes) == ("one", "RAISED", 1)
            assert blocker.message == "Module one failed with ValueError."
            assert "one's tenant_deleted" in blocker.mend
            since = blocker.since
            sweep()
            (blocker,) = status("t1").blockers
            assert (blocker.passes, blocker.since) == (2, since)
        # The text of a foreign exception is for operators: callers never see it, and nobody sees its secrets.
        assert "hunter2" not in repr(told_status)
        with connection.cursor() as cursor:
            cursor.execute("SELECT blockers::text FROM compute_tenant_states")
            assert "ValueError: password=..." in cursor.fetchone()[0]
        assert "in fail" in caplog.text, "operators have the stack"
        assert "ValueError: password=..." in caplog.text
        # A stack shows the line that raised, which is code; what was raised is blotted out.
        assert caplog.text.count("hunter2") == caplog.text.count('raise ValueError("password=hunter2")')

    def test_a_hook_may_say_what_blocks_it_and_how_to_mend_it(self) -> None:
        def refuse(ctx: ModuleContext, tenant_id: str) -> Any:
            raise ComputeError("IN_USE", "2 machines are being erased.", mend="Wait, or call machines.abort.")

        with hosting(Script("one", refuse)):
            delete("t1")
            tick_until_quiet()
            (blocker,) = status("t1").blockers
        assert blocker.message == "Module one refuses: 2 machines are being erased."
        assert blocker.mend == "Wait, or call machines.abort."

    def test_a_hook_that_fails_and_then_mends_itself_lets_the_teardown_end(self) -> None:
        script = Script("one", lambda ctx, tenant: 1 / 0)
        with hosting(script):
            delete("t1")
            tick_until_quiet()
            script.hook = done
            sweep()
        assert torn_down()
        assert status("t1").blockers == []

    def test_a_hook_whose_statement_fails_is_a_blocker_although_it_swallows_the_error(self) -> None:
        def swallow(ctx: ModuleContext, tenant_id: str) -> Any:
            try:
                ctx.sql.query("SELECT * FROM nowhere")
            except Exception:
                return DONE

        with hosting(Script("one", swallow)):
            delete("t1")
            tick_until_quiet()
            assert not torn_down()
            assert status("t1").blockers[0].answer == "RAISED"

    @pytest.mark.parametrize("answer", [None, True, "done", 0, "\x00\ud800"])
    def test_an_answer_that_is_neither_is_a_blocker(self, answer: Any) -> None:
        with hosting(Script("one", lambda ctx, tenant: answer)):
            delete("t1")
            tick_until_quiet()
            (blocker,) = status("t1").blockers
        assert blocker.answer == "INVALID"
        assert "neither DONE nor SYNC_AGAIN" in blocker.message

    def test_a_hook_that_always_waits_is_named_and_the_event_is_not_yet(self) -> None:
        with hosting(Script("one", lambda ctx, tenant: SYNC_AGAIN)):
            delete("t1")
            tick_until_quiet()
            sweep()
            sweep()
            (blocker,) = status("t1").blockers
        assert (blocker.module, blocker.answer, blocker.passes) == ("one", "SYNC_AGAIN", 4)
        assert status("t1").phase == "deleting"
        assert told("tenant.torn-down") == []

    def test_one_tenants_failing_hook_delays_no_other_tenant(self) -> None:
        def fail_for_t1(ctx: ModuleContext, tenant_id: str) -> Any:
            if tenant_id == "t1":
                raise ValueError("boom")
            return DONE

        with hosting(Script("one", fail_for_t1)):
            delete("t1")
            delete("t2")
            tick_until_quiet()
        assert not torn_down("t1")
        assert torn_down("t2")

    def test_texts_that_jsonb_cannot_hold_are_kept_as_far_as_they_go(self) -> None:
        def fail(ctx: ModuleContext, tenant_id: str) -> Any:
            raise ComputeError("IN_USE", "nul \x00 and lone \ud800" + "x" * 5_000, mend="m\x00")

        with hosting(Script("one", fail)):
            delete("t1")
            tick_until_quiet()
            assert status("t1").blockers[0].message.startswith("Module one refuses: nul \N{REPLACEMENT CHARACTER}")


def test_the_end_is_told_once_with_what_it_took() -> None:
    widgets("t1", 150)
    delete("t1")
    tick_until_quiet()
    for _ in range(3):
        sweep()
    assert told("tenant.torn-down") == [{"tenant": "t1", "subject": "tenant/t1", "data": {"passes": 2}}]


def test_the_blockers_of_a_late_teardown_are_in_the_finding() -> None:
    from better_compute.engine.contexts import module_context
    from compute_modules.tenancy.self_check import self_check

    with hosting(Script("one", lambda ctx, tenant: 1 / 0)):
        delete("t1")
        tick_until_quiet()
        advance_clock(timedelta(hours=2))
        (finding,) = self_check(module_context(registry.current().module("tenancy")))
        assert "Module one failed with ZeroDivisionError." in finding.fix
        assert "after 1 pass." in finding.message


def test_it_is_in_the_report_of_the_doctor() -> None:
    delete("t1")
    advance_clock(timedelta(hours=2))
    assert "tenancy.teardown-late" in [finding.check for finding in compute.self_check().findings]
