"""Workers that die, freeze and meet during a teardown: it ends once, told once, with nothing left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from better_compute import DONE, SYNC_AGAIN, LeaseLost, ModuleContext, compute, registry
from better_compute.contract.contexts import LeaseInfo
from better_compute.engine import runs
from better_compute.engine.holds import Hold
from better_compute.testing import advance_clock
from example_project.acme_widgets.models import Widget
from tests.engine.conftest import ROOT
from tests.modules.tenancy.conftest import Script, delete, hosting, in_thread, status, tick, tick_until_quiet, told
from tests.warm import Warm

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("swept")]

#: Longer than any lease and any backoff of a key whose worker died.
LONG = timedelta(minutes=40)


#: One batch in a process that dies, as by SIGKILL, right before its n-th statement.
BATCH = """
import os, sys
import django
django.setup()
from django.db import connection
from better_compute import compute

ran = 0
def kill(execute, sql, params, many, context):
    global ran
    ran += 1
    if ran == int(sys.argv[1]):
        os._exit(9)
    return execute(sql, params, many, context)

with connection.execute_wrapper(kill):
    compute.jobs["tenancy"].tick()
"""


@pytest.fixture
def died_at(process_env: dict[str, str], warm_project: Warm, tmp_path: Path) -> Callable[[int], bool]:
    """Run one batch that dies at a statement; False when it had fewer statements."""

    def batch(statement: int) -> bool:
        log = tmp_path / "batch.log"
        with log.open("w") as file:
            process = warm_project.python(
                *("-c", BATCH, str(statement)), folder=ROOT, environment=process_env, log=file
            )
        ended = process.wait(60)
        assert ended in (0, 9), log.read_text()
        return ended == 9

    return batch


def settle() -> None:
    """Let leases end and backoffs pass, and run what is due."""
    for _ in range(5):
        advance_clock(LONG)
        tick_until_quiet()


def steps() -> Iterator[int]:
    statement = 1
    while True:
        yield statement
        statement += 1


def test_a_worker_killed_at_any_statement_leaves_a_teardown_that_ends_once(died_at: Callable[[int], bool]) -> None:
    tried = 0
    for statement in steps():
        tenant = f"t{statement}"
        Widget.objects.bulk_create(Widget(id=f"{tenant}-{number}", tenant_id=tenant) for number in range(120))
        delete(tenant)
        died = died_at(statement)
        settle()
        assert status(tenant).phase == "torn_down", f"killed at statement {statement}"
        assert not Widget.objects.filter(tenant_id=tenant).exists()
        assert len([event for event in told("tenant.torn-down") if event["tenant"] == tenant]) == 1
        if not died:
            break
        tried += 1
    # Claim, fence, hooks and the end are all among them.
    assert tried >= 10


def test_a_worker_killed_in_every_pass_still_gets_there(died_at: Callable[[int], bool]) -> None:
    """Each pass dies at a different place; progress that was committed is never lost."""
    Widget.objects.bulk_create(Widget(id=f"t1-{number}", tenant_id="t1") for number in range(250))
    delete("t1")
    for statement in (14, 9, 18, 12, 16):
        died_at(statement)
        advance_clock(LONG)
    settle()
    assert status("t1").phase == "torn_down"
    assert len(told("tenant.torn-down")) == 1


def stale_context(name: str = "tenancy") -> Any:
    """The context of a run whose lease has gone to another member."""
    spec = registry.current().module("tenancy")
    hold = Hold(LeaseInfo("singleton:tenancy", "00000000-0000-4000-8000-000000000000", 1))
    return runs.context_for(spec, [hold])


def test_a_worker_that_lost_its_lease_changes_nothing() -> None:
    from compute_modules.tenancy.reconcilers import TenancyReconciler

    Widget.objects.create(id="w1", tenant_id="t1")
    delete("t1")
    with pytest.raises(LeaseLost):
        TenancyReconciler().run(stale_context(), "t1")
    assert Widget.objects.exists()
    assert status("t1").passes == 0


def test_two_passes_at_once_end_it_once() -> None:
    """The end is written under the row's lock, so that a second pass that also met only DONE finds it written."""
    from better_compute.engine.contexts import module_context
    from compute_modules.tenancy import records

    ctx = module_context(registry.current().module("tenancy"))
    delete("t1")
    together = threading.Barrier(3)

    def end() -> Any:
        with ctx.sql.transaction():
            record = records.read(ctx, "t1")
            together.wait(10)
            return records.write_pass(ctx, record, [])

    threads = [in_thread(end) for _ in range(3)]
    for thread, _ in threads:
        thread.join(20)
    assert [answers[0] for _, answers in threads] == ["torn_down"] * 3
    assert len(told("tenant.torn-down")) == 1
    assert status("t1").passes == 1


def test_sweeps_of_two_workers_at_once_run_one_after_the_other() -> None:
    overlap = {"now": 0, "most": 0}
    lock = threading.Lock()

    def count(ctx: ModuleContext, tenant_id: str) -> Any:
        with lock:
            overlap["now"] += 1
            overlap["most"] = max(overlap["most"], overlap["now"])
        ctx.sql.query("SELECT pg_sleep(0.05)")
        with lock:
            overlap["now"] -= 1
        return DONE

    with hosting(Script("one", count)):
        for number in range(5):
            delete(f"t{number}")
        start = threading.Barrier(2)

        def work() -> None:
            start.wait(10)
            for _ in range(10):
                try:
                    tick()
                except Exception as error:  # the other worker holds the lease
                    assert "holds the lease" in str(error)  # noqa: PT017

        threads = [in_thread(work) for _ in range(2)]
        for thread, _ in threads:
            thread.join(30)
        tick_until_quiet()
    assert overlap["most"] == 1
    assert sorted(event["tenant"] for event in told("tenant.torn-down")) == [f"t{number}" for number in range(5)]


def test_a_database_that_goes_away_in_a_hook_is_retried_and_loses_nothing() -> None:
    cut = {"left": 1}

    def cut_once(ctx: ModuleContext, tenant_id: str) -> Any:
        if cut["left"]:
            cut["left"] -= 1
            ctx.sql.query("SELECT pg_terminate_backend(pg_backend_pid())")
        return DONE

    with hosting(Script("one", cut_once)):
        delete("t1")
        tried, answers = in_thread(lambda: tick())
        tried.join(20)
        assert isinstance(answers[0], BaseException)
        assert status("t1").teardown_done_at is None
        settle()
    assert status("t1").phase == "torn_down"
    assert len(told("tenant.torn-down")) == 1


def test_a_hook_that_writes_on_every_call_and_never_ends_leaves_the_others_alone() -> None:
    def busy(ctx: ModuleContext, tenant_id: str) -> Any:
        if tenant_id != "t1":
            return DONE
        ctx.sql.query("UPDATE compute_clock SET anchored_at = compute_now()")
        return SYNC_AGAIN

    with hosting(Script("one", busy)):
        delete("t1")
        for _ in range(3):
            assert tick() > 0
        delete("t2")
        tick()
        tick()
        assert status("t2").phase == "torn_down"
        assert status("t1").phase == "deleting"
    assert compute.api is not None
