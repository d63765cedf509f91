"""What a run is given, and what is told of one that failed."""

from __future__ import annotations

import select
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Timer
from time import monotonic

import pytest
from django.db import InternalError, connection, transaction
from psycopg import errors

from better_compute.contract.contexts import LeaseInfo, ReconcileContext
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, Outcome
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine import runs
from better_compute.engine.holds import Hold
from better_compute.store.claims import Claimed

SPEC = ModuleSpec("t", "tests", "t")


class Steps(Reconciler):
    name = "t.steps"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return DONE


@pytest.fixture
def holds() -> list[Hold]:
    return [Hold(LeaseInfo(f"shard:{shard}", "m", 1), shard) for shard in (1, 2, 3)]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_the_signal_of_a_run_under_several_leases_is_set_when_any_is_lost(holds: list[Hold], lost: int) -> None:
    ctx = runs.context_for(SPEC, holds)
    assert (ctx.signal.aborted, ctx.signal.wait(0.01)) == (False, False)
    holds[lost].abort.set()
    assert (ctx.signal.aborted, ctx.signal.wait(10)) == (True, True)


def test_who_waits_under_several_leases_is_told_at_once(holds: list[Hold]) -> None:
    ctx = runs.context_for(SPEC, holds)
    timer = Timer(0.05, holds[2].abort.set)
    timer.start()
    began = monotonic()
    assert ctx.signal.wait(10)
    assert monotonic() - began < 2
    timer.join()


def test_a_run_under_one_lease_has_its_signal(holds: list[Hold]) -> None:
    ctx = runs.context_for(SPEC, holds[:1])
    assert ctx.signal is holds[0].abort
    assert (ctx.shard, ctx.lease.name) == (1, "shard:1")


@pytest.fixture
def standby(transactional_db: None) -> Iterator[None]:
    """A server that says it is a standby."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE SCHEMA standby; CREATE FUNCTION standby.pg_is_in_recovery() RETURNS boolean LANGUAGE sql "
            "AS 'SELECT true'; SET search_path = standby, pg_catalog, public"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA standby CASCADE; RESET search_path")


def told(failure: Exception) -> str:
    """What a run that raises ``failure`` leaves in its key's row."""

    class Raises(Steps):
        def run(self, ctx: ReconcileContext, key: str) -> Outcome:
            raise failure

    claimed = Claimed(1, "k", -1, 1, 0, None, datetime.now(UTC), suspect=False)
    hold = Hold(LeaseInfo("singleton:t.steps", "m", 1), None)
    [ended] = runs.run_keys(SPEC, Raises(), [(claimed, hold)], may_start=lambda hold: True).failed
    return ended.error


def refused() -> InternalError:
    """What Django raises for a write on a read-only connection."""
    with connection.cursor() as cursor, pytest.raises(InternalError) as caught:
        cursor.execute("SET default_transaction_read_only = on")
        try:
            cursor.execute("CREATE TABLE public.absent ()")
        finally:
            cursor.execute("RESET default_transaction_read_only")
    assert isinstance(caught.value.__cause__, errors.ReadOnlySqlTransaction)
    return caught.value


@pytest.mark.django_db(transaction=True)
def test_a_refused_write_is_told_with_its_mend() -> None:
    error = told(refused())
    assert error.startswith("ReadOnlySqlTransaction (SQLSTATE 25006)")
    assert error.endswith(
        "(This was a write outside ctx.sql.transaction(), which a worker's connection refuses because "
        "no fence would guard it.)"
    )


@pytest.mark.django_db(transaction=True)
def test_a_run_that_idled_in_its_transaction_is_told_the_limit_and_the_mend() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = '50ms'")
    with pytest.raises(InternalError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        select.select([connection.connection.fileno()], [], [], 10)
        cursor.execute("SELECT 1")
    error = told(caught.value)
    assert error.startswith("IdleInTransactionSessionTimeout (SQLSTATE 25P03)")
    assert "may send nothing for 5000 ms, half of WORKER.TTL_MS" in error
    assert error.endswith("do slow work outside of ctx.sql.transaction(), or raise TTL_MS.)")


@pytest.mark.django_db(transaction=True)
def test_the_connection_to_a_server_that_writes_is_kept() -> None:
    told(refused())
    assert connection.connection is not None


def test_the_connection_to_a_standby_is_dropped(standby: None) -> None:
    told(refused())
    assert connection.connection is None


def test_a_standbys_refusal_is_not_told_as_a_write_outside_the_fence(standby: None) -> None:
    error = told(refused())
    assert error == "ReadOnlySqlTransaction (SQLSTATE 25006): cannot execute CREATE TABLE in a read-only transaction"
