"""``compute.jobs[name].tick()``: one batch, on this thread, without timers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import ClassVar

import pytest
from django.db import connection

from better_compute import registry
from better_compute.contract.contexts import ReconcileContext
from better_compute.contract.errors import ComputeError, LeaseLost
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, SYNC_AGAIN, Outcome
from better_compute.contract.reconcilers import BatchReconciler, Periodic, Reconciler
from better_compute.engine import backoff
from better_compute.engine.contexts import WorkPort
from better_compute.engine.jobs import Jobs
from better_compute.store import leases, members
from better_compute.store.transaction import transaction
from better_compute.testing import advance_clock

pytestmark = pytest.mark.django_db

Body = Callable[[ReconcileContext, str], Outcome]


class Steps(Reconciler):
    """Runs what the test gives it."""

    name = "t.steps"
    ran: ClassVar[list[str]] = []
    body: ClassVar[Body]

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        Steps.ran.append(key)
        return Steps.body(ctx, key)


class Sharded(Steps):
    name, shard_by = "t.sharded", "node"


class Swept(Steps):
    name = "t.swept"
    periodic = (Periodic("sweep", every="10m"),)


class Many(BatchReconciler):
    name, shard_by = "t.many", "node"
    calls: ClassVar[list[list[str]]] = []

    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        with ctx.sql.transaction():
            Many.calls.append(sorted(keys))
        return {"again": SYNC_AGAIN}


@pytest.fixture(autouse=True)
def _hosted() -> Iterator[None]:
    reconcilers = (Steps(), Sharded(), Swept(), Many())
    Steps.ran.clear()
    Many.calls.clear()
    Steps.body = staticmethod(lambda ctx, key: DONE)
    with registry.override(ModuleSpec("t", "tests", "t", reconcilers=reconcilers)):
        yield


def enqueue(kind: str, *keys: str, delay: timedelta | None = None) -> None:
    with transaction():
        WorkPort().enqueue_many(kind, keys, delay=delay)


def rows(kind: str) -> list[tuple[str, int, str | None]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT key, attempts, last_error FROM compute_work WHERE kind = %s ORDER BY key", [kind])
        return list(cursor.fetchall())


def test_it_runs_one_batch_and_empties_the_queue() -> None:
    enqueue("t.steps", "a", "b")
    assert Jobs()["t.steps"].tick() == 2
    assert sorted(Steps.ran) == ["a", "b"]
    assert rows("t.steps") == []
    assert Jobs()["t.steps"].tick() == 0


def test_exactly_one_batch_runs() -> None:
    enqueue("t.steps", *[f"k{number}" for number in range(130)])
    assert Jobs()["t.steps"].tick() == 100
    assert Jobs()["t.steps"].tick() == 30


def test_sharded_keys_run_with_their_shard_and_lease() -> None:
    seen: list[tuple[int | None, str]] = []

    def body(ctx: ReconcileContext, key: str) -> Outcome:
        seen.append((ctx.shard, ctx.lease.name))
        return DONE

    Steps.body = staticmethod(body)
    enqueue("t.sharded", "node-1")
    assert Jobs()["t.sharded"].tick() == 1
    [(shard, lease)] = seen
    assert lease == f"shard:{shard}"


def test_a_singleton_has_no_shard() -> None:
    seen: list[tuple[int | None, str]] = []

    def body(ctx: ReconcileContext, key: str) -> Outcome:
        seen.append((ctx.shard, ctx.lease.name))
        return DONE

    Steps.body = staticmethod(body)
    enqueue("t.steps", "a")
    Jobs()["t.steps"].tick()
    assert seen == [(None, "singleton:t.steps")]


def test_sync_again_runs_once_a_tick() -> None:
    Steps.body = staticmethod(lambda ctx, key: SYNC_AGAIN)
    enqueue("t.steps", "a")
    assert [Jobs()["t.steps"].tick() for _ in range(3)] == [1, 1, 1]
    assert Steps.ran == ["a", "a", "a"]


def test_a_failure_is_kept_and_retried_after_its_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    # Half a minute at least, which no stalled machine takes to look again.
    monkeypatch.setattr(backoff, "BASE_MS", 60_000)

    def body(ctx: ReconcileContext, key: str) -> Outcome:
        raise ValueError("no luck")

    Steps.body = staticmethod(body)
    enqueue("t.steps", "a")
    assert Jobs()["t.steps"].tick() == 1
    assert rows("t.steps") == [("a", 1, "ValueError: no luck")]
    assert Jobs()["t.steps"].tick() == 0
    advance_clock(timedelta(seconds=61))
    assert Jobs()["t.steps"].tick() == 1
    assert rows("t.steps") == [("a", 2, "ValueError: no luck")]


def test_an_error_is_kept_without_secrets_and_without_values() -> None:
    def body(ctx: ReconcileContext, key: str) -> Outcome:
        if key == "secret":
            raise ConnectionError("postgresql://bc:hunter2@db/x refused, password=hunter2")
        with ctx.sql.transaction():
            for _ in range(2):
                ctx.sql.query("INSERT INTO compute_pauses VALUES ('kind:hunter2', '', 't', compute_now())")
        return DONE

    Steps.body = staticmethod(body)
    enqueue("t.steps", "secret", "value")
    Jobs()["t.steps"].tick()
    assert [error for _, _, error in rows("t.steps")] == [
        "ConnectionError: postgresql://...@db/x refused, password=...",
        'UniqueViolation (SQLSTATE 23505): duplicate key value violates unique constraint "compute_pauses_pkey"',
    ]


@pytest.mark.parametrize("answer", [None, True, "done", 1])
def test_an_answer_that_is_none_of_the_two_fails_the_key(answer: object) -> None:
    Steps.body = staticmethod(lambda ctx, key: answer)  # type: ignore[assignment,return-value]
    enqueue("t.steps", "a")
    Jobs()["t.steps"].tick()
    [(_, _, error)] = rows("t.steps")
    assert error == f"TypeError: run answered {answer!r}; return DONE or SYNC_AGAIN."


def test_leaving_the_process_is_a_failure_of_the_key() -> None:
    def body(ctx: ReconcileContext, key: str) -> Outcome:
        raise SystemExit(3)

    Steps.body = staticmethod(body)
    enqueue("t.steps", "a")
    Jobs()["t.steps"].tick()
    assert rows("t.steps") == [("a", 1, "SystemExit: 3")]


def test_a_lost_lease_is_no_failure_of_the_key() -> None:
    def body(ctx: ReconcileContext, key: str) -> Outcome:
        with connection.cursor() as cursor:
            leases.release(cursor, ctx.lease.holder, [ctx.lease.name])
        with ctx.sql.transaction():
            raise AssertionError("the fence let it through")

    Steps.body = staticmethod(body)
    enqueue("t.steps", "a")
    assert Jobs()["t.steps"].tick() == 1
    assert rows("t.steps") == [("a", 0, None)]


def test_a_swallowed_lease_loss_finishes_nothing() -> None:
    def body(ctx: ReconcileContext, key: str) -> Outcome:
        with connection.cursor() as cursor:
            leases.release(cursor, ctx.lease.holder, [ctx.lease.name])
        with pytest.raises(LeaseLost), ctx.sql.transaction():
            pass
        return DONE

    Steps.body = staticmethod(body)
    enqueue("t.steps", "a")
    Jobs()["t.steps"].tick()
    assert rows("t.steps") == [("a", 0, None)]


def test_many_keys_are_no_string() -> None:
    with pytest.raises(ComputeError, match=r"The t\.steps keys 'abc' are one string.*Use enqueue\(\) for one key"):
        WorkPort().enqueue_many("t.steps", "abc")
    assert rows("t.steps") == []


def test_a_key_enqueued_by_its_own_run_runs_again() -> None:
    def body(ctx: ReconcileContext, key: str) -> Outcome:
        if len(Steps.ran) == 1:
            with ctx.sql.transaction():
                ctx.work.enqueue("t.steps", key)
        return DONE

    Steps.body = staticmethod(body)
    enqueue("t.steps", "a")
    assert [Jobs()["t.steps"].tick() for _ in range(3)] == [1, 1, 0]


def test_many_keys_of_many_shards_are_one_call() -> None:
    enqueue("t.many", "again", *[f"n{number}" for number in range(40)])
    assert Jobs()["t.many"].tick() == 41
    assert len(Many.calls) == 1
    assert [key for key, _, _ in rows("t.many")] == ["again"]


def test_a_periodic_key_is_seeded_once_and_comes_back() -> None:
    assert Jobs()["t.swept"].tick() == 1
    assert Jobs()["t.swept"].tick() == 0
    advance_clock(timedelta(minutes=10, seconds=1))
    assert Jobs()["t.swept"].tick() == 1
    enqueue("t.swept", "sweep")
    assert Jobs()["t.swept"].tick() == 1
    assert Steps.ran == ["sweep"] * 3


def test_a_delayed_key_waits() -> None:
    enqueue("t.steps", "a", delay=timedelta(seconds=30))
    assert Jobs()["t.steps"].tick() == 0
    advance_clock(timedelta(seconds=31))
    assert Jobs()["t.steps"].tick() == 1


def test_it_leaves_no_member_and_no_lease() -> None:
    Jobs()["t.sharded"].tick()
    with connection.cursor() as cursor:
        assert members.live_members(cursor) == []
        assert leases.held(cursor) == {}


def test_a_live_holder_is_a_conflict() -> None:
    with connection.cursor() as cursor:
        members.register(cursor, id="w", role="controllers", host="h", pid=1, ttl_ms=9_000, connections=1, kinds=[])
        leases.ensure(cursor, ["singleton:t.steps"])
        leases.acquire(cursor, "w", ["singleton:t.steps"])
    with pytest.raises(ComputeError, match=r"A live worker holds the lease of 't\.steps'"):
        Jobs()["t.steps"].tick()


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        Jobs()["t.absent"]
    assert set(Jobs()) == {"t.steps", "t.sharded", "t.swept", "t.many"}
