"""Our transaction: durable, work flushed last, savepoints drop work, nothing swallowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread

import pytest
from django.db import (
    IntegrityError,
    InternalError,
    OperationalError,
    connection,
    connections,
    transaction as django_transaction,
)
from django.test.utils import CaptureQueriesContext
from psycopg.pq import TransactionStatus

from better_compute.contract.contexts import LeaseInfo
from better_compute.contract.errors import ComputeError, LeaseLost
from better_compute.store import leases, members, transaction, work as store_work
from better_compute.store.fence import Fence
from better_compute.store.session import connect, guard_thread
from better_compute.store.work import WorkRow

ROW = WorkRow("acme.widgets", "one", -1)
OTHER = WorkRow("acme.widgets", "two", -1)


def queued() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT key, generation FROM compute_work ORDER BY key")
        return dict(cursor.fetchall())


def fail_a_statement() -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO compute_work (kind) VALUES ('x')")


@pytest.fixture
def woken() -> Iterator[list[tuple[str, int]]]:
    seen: list[tuple[str, int]] = []
    stop = transaction.wake_with(lambda kind, shard: seen.append((kind, shard)))
    yield seen
    stop()


@pytest.mark.django_db(transaction=True)
class TestCommitted:
    def test_work_is_written_right_before_commit(self) -> None:
        with transaction.transaction():
            transaction.enqueue([ROW])
            assert queued() == {}
        assert queued() == {"one": 1}

    def test_a_key_enqueued_twice_in_one_transaction_is_one_wake_up(self) -> None:
        with transaction.transaction():
            transaction.enqueue([ROW])
            transaction.enqueue([ROW])
        assert queued() == {"one": 1}

    def test_a_rolled_back_savepoint_drops_its_work(self) -> None:
        with transaction.transaction():
            transaction.enqueue([ROW])
            with pytest.raises(ZeroDivisionError), transaction.transaction():
                transaction.enqueue([OTHER])
                raise ZeroDivisionError
        assert queued() == {"one": 1}

    def test_a_rolled_back_savepoint_of_the_host_drops_its_work(self) -> None:
        with transaction.transaction():
            with pytest.raises(ZeroDivisionError), django_transaction.atomic():
                transaction.enqueue([OTHER])
                raise ZeroDivisionError
            transaction.enqueue([ROW])
        assert queued() == {"one": 1}

    def test_a_failed_transaction_writes_and_wakes_nothing(self, woken: list[tuple[str, int]]) -> None:
        with pytest.raises(ZeroDivisionError), transaction.transaction():
            transaction.enqueue([ROW])
            raise ZeroDivisionError
        assert (queued(), woken) == ({}, [])

    def test_workers_are_woken_after_commit(self, woken: list[tuple[str, int]]) -> None:
        with transaction.transaction():
            transaction.enqueue([ROW])
            assert woken == []
        assert woken == [("acme.widgets", -1)]

    def test_a_wake_up_that_raises_does_not_fail_the_committed_call(self) -> None:
        def broken(kind: str, shard: int) -> None:
            raise ZeroDivisionError

        stop = transaction.wake_with(broken)
        try:
            with transaction.transaction():
                transaction.enqueue([ROW])
        finally:
            stop()
        assert queued() == {"one": 1}

    def test_a_swallowed_sql_error_refuses_to_commit(self) -> None:
        with pytest.raises(ComputeError, match="its error was swallowed"), transaction.transaction():
            transaction.enqueue([ROW])
            with pytest.raises(IntegrityError):
                fail_a_statement()
        assert queued() == {}

    def test_a_block_marked_for_rollback_refuses_to_look_committed(self) -> None:
        with (
            pytest.raises(ComputeError, match="its error was swallowed"),
            transaction.transaction(),
            pytest.raises(ZeroDivisionError),
            django_transaction.atomic(savepoint=False),
        ):
            raise ZeroDivisionError

    def test_a_savepoint_marked_for_rollback_refuses_to_look_done(self) -> None:
        with (
            pytest.raises(ComputeError, match="its error was swallowed"),
            transaction.transaction(),
            transaction.transaction(),
        ):
            transaction.enqueue([ROW])
            django_transaction.set_rollback(True)
        assert queued() == {}

    def test_an_error_in_a_savepoint_is_legal(self) -> None:
        with transaction.transaction():
            transaction.enqueue([ROW])
            with pytest.raises(IntegrityError), transaction.transaction():
                fail_a_statement()
        assert queued() == {"one": 1}

    def test_a_connection_closed_inside_refuses(self) -> None:
        with pytest.raises(ComputeError, match="closed inside"), transaction.transaction():
            connection.close()

    def test_a_hosts_open_transaction_is_refused(self) -> None:
        with django_transaction.atomic(), pytest.raises(RuntimeError, match="durable"), transaction.transaction():
            pass

    def test_autocommit_turned_off_is_refused(self) -> None:
        django_transaction.set_autocommit(False)
        try:
            with pytest.raises(RuntimeError, match="Autocommit is off"), transaction.transaction():
                pass
        finally:
            django_transaction.rollback()
            django_transaction.set_autocommit(True)

    def test_enqueue_in_a_hosts_transaction_is_written_at_once_and_once(self, woken: list[tuple[str, int]]) -> None:
        with django_transaction.atomic():
            transaction.enqueue([ROW])
            assert queued() == {"one": 1}
        assert (queued(), woken) == ({"one": 1}, [("acme.widgets", -1)])

    def test_enqueue_outside_a_transaction_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="needs an open transaction"):
            transaction.enqueue([ROW])

    def test_a_workers_session_writes_only_under_a_fence(self) -> None:
        refused: list[str] = []

        def work() -> None:
            guard_thread("default", {})
            try:
                with transaction.transaction(first=lambda: None, fenced=True):
                    transaction.enqueue([ROW])
                try:
                    with transaction.transaction(first=lambda: None):
                        transaction.enqueue([OTHER])
                except InternalError as error:
                    refused.append(type(error.__cause__).__name__)
            finally:
                connections.close_all()

        thread = Thread(target=work)
        thread.start()
        thread.join()
        assert refused == ["ReadOnlySqlTransaction"]
        assert queued() == {"one": 1}

    def test_requeue_makes_a_waiting_key_due_and_wakes(self, woken: list[tuple[str, int]]) -> None:
        with transaction.transaction():
            transaction.enqueue([WorkRow("acme.widgets", "late", -1, delay_ms=60_000)])
        woken.clear()
        with transaction.transaction():
            assert transaction.requeue("acme.widgets", "late")
            assert not transaction.requeue("acme.widgets", "absent")
        with connection.cursor() as cursor:
            cursor.execute("SELECT not_before <= compute_now(), generation FROM compute_work")
            assert cursor.fetchall() == [(True, 2)]
        assert woken == [("acme.widgets", -1)]


@pytest.mark.django_db
class TestInsideATestCase:
    """Django's TestCase opens a transaction around each test; ours must behave inside it."""

    def test_it_is_allowed_and_flushes(self) -> None:
        with transaction.transaction():
            transaction.enqueue([ROW])
        assert queued() == {"one": 1}

    def test_the_next_one_does_not_flush_the_first_one_again(self) -> None:
        with transaction.transaction():
            transaction.enqueue([ROW])
        with transaction.transaction():
            transaction.enqueue([OTHER])
        assert queued() == {"one": 1, "two": 1}

    def test_rolling_back_drops_work(self) -> None:
        with pytest.raises(ZeroDivisionError), transaction.transaction():
            transaction.enqueue([ROW])
            raise ZeroDivisionError
        with transaction.transaction():
            transaction.enqueue([OTHER])
        assert queued() == {"two": 1}


@pytest.mark.django_db(transaction=True)
class TestFusedFence:
    """On a handler's connection the fence travels with BEGIN; what it promises is the same."""

    @pytest.fixture
    def held(self) -> list[LeaseInfo]:
        with connection.cursor() as cursor:
            members.register(
                cursor, id="m", role="controllers", host="h", pid=1, ttl_ms=60_000, connections=1, kinds=[]
            )
            names = [f"shard:{number}" for number in range(3)]
            leases.ensure(cursor, names)
            return [LeaseInfo(name, "m", epoch) for name, epoch in sorted(leases.acquire(cursor, "m", names).items())]

    def on_a_handlers_thread(self, work: Callable[[], None]) -> list[BaseException]:
        failures: list[BaseException] = []

        def run() -> None:
            guard_thread("default", {})
            try:
                work()
            except BaseException as error:
                failures.append(error)
            finally:
                connections.close_all()

        thread = Thread(target=run)
        thread.start()
        thread.join()
        return failures

    @pytest.mark.parametrize("count", [1, 3])
    def test_it_writes_and_commits_under_its_leases(self, held: list[LeaseInfo], count: int) -> None:
        def work() -> None:
            with transaction.transaction(first=Fence(held[:count]), fenced=True):
                assert connection.in_atomic_block
                transaction.enqueue([ROW])
            assert connection.get_autocommit()
            assert connection.connection.info.transaction_status == TransactionStatus.IDLE

        assert self.on_a_handlers_thread(work) == []
        assert queued() == {"one": 1}

    @pytest.mark.parametrize("count", [1, 3])
    def test_a_lease_that_is_gone_lets_nothing_through(self, held: list[LeaseInfo], count: int) -> None:
        with connection.cursor() as cursor:
            leases.release(cursor, "m", [held[0].name])

        def work() -> None:
            with pytest.raises(LeaseLost), transaction.transaction(first=Fence(held[:count]), fenced=True):
                transaction.enqueue([ROW])
            assert connection.connection.info.transaction_status == TransactionStatus.IDLE
            with transaction.transaction(first=Fence(held[1:2]), fenced=True):
                transaction.enqueue([OTHER])

        assert self.on_a_handlers_thread(work) == []
        assert queued() == {"two": 1}

    def test_it_holds_the_lease_until_commit(self, held: list[LeaseInfo]) -> None:
        released: list[set[str]] = []

        def work() -> None:
            with transaction.transaction(first=Fence(held[:1]), fenced=True), connect("default", "t", {}) as other:
                released.append(leases.release(other.cursor(), "m", [held[0].name]))

        assert self.on_a_handlers_thread(work) == []
        assert released == [set()]

    @pytest.mark.parametrize("count", [1, 3])
    @pytest.mark.parametrize("enqueues", [True, False])
    def test_a_run_that_ends_its_fenced_transaction_is_told_and_enqueues_nothing(
        self, held: list[LeaseInfo], count: int, enqueues: bool
    ) -> None:
        def work() -> None:
            with (
                pytest.raises(ComputeError, match="was ended inside"),
                transaction.transaction(first=Fence(held[:count]), fenced=True),
                connection.cursor() as cursor,
            ):
                cursor.execute("ROLLBACK; BEGIN READ WRITE")
                if enqueues:
                    transaction.enqueue([ROW])

        assert self.on_a_handlers_thread(work) == []
        assert queued() == {}

    def test_with_nothing_held_back_its_end_is_the_cores_own_message(self, held: list[LeaseInfo]) -> None:
        sent: list[str] = []

        def work() -> None:
            with CaptureQueriesContext(connection) as captured:
                with transaction.transaction(first=Fence(held[:1]), fenced=True), connection.cursor() as cursor:
                    store_work.upsert(cursor, [ROW])
                sent.extend(query["sql"] for query in captured if "compute." in query["sql"])
            assert connection.connection.info.transaction_status == TransactionStatus.IDLE

        assert self.on_a_handlers_thread(work) == []
        assert (queued(), sent) == ({"one": 1}, [])

    def test_a_deferred_constraint_that_fails_undoes_a_fenced_write(self, held: list[LeaseInfo]) -> None:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE late (n int PRIMARY KEY, m int REFERENCES late DEFERRABLE INITIALLY DEFERRED)")

        def work() -> None:
            with (
                pytest.raises(IntegrityError),
                transaction.transaction(first=Fence(held[:1]), fenced=True),
                connection.cursor() as cursor,
            ):
                store_work.upsert(cursor, [ROW])
                cursor.execute("INSERT INTO late VALUES (1, 2)")
            assert connection.connection.info.transaction_status == TransactionStatus.IDLE
            with transaction.transaction(first=Fence(held[:1]), fenced=True), connection.cursor() as cursor:
                store_work.upsert(cursor, [OTHER])

        try:
            assert self.on_a_handlers_thread(work) == []
            assert queued() == {"two": 1}
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE late")

    def test_an_exception_rolls_back(self, held: list[LeaseInfo]) -> None:
        def work() -> None:
            with (
                pytest.raises(ZeroDivisionError),
                transaction.transaction(first=Fence(held[:1]), fenced=True),
                connection.cursor() as cursor,
            ):
                store_work.upsert(cursor, [ROW])
                raise ZeroDivisionError

        assert self.on_a_handlers_thread(work) == []
        assert queued() == {}

    def test_a_dead_connection_is_an_operational_error_and_the_next_one_works(self, held: list[LeaseInfo]) -> None:
        def work() -> None:
            connection.ensure_connection()
            with connect("default", "t", {}) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
            with pytest.raises(OperationalError), transaction.transaction(first=Fence(held[:1]), fenced=True):
                pass
            connection.close_if_unusable_or_obsolete()
            with transaction.transaction(first=Fence(held[:1]), fenced=True):
                transaction.enqueue([ROW])

        assert self.on_a_handlers_thread(work) == []
        assert queued() == {"one": 1}


@pytest.mark.django_db(transaction=True)
class TestFusedCommit:
    """The last enqueue goes out with COMMIT in one message."""

    def test_the_wake_comes_after_the_commit(self) -> None:
        seen: list[dict[str, int]] = []

        def wake(kind: str, shard: int) -> None:
            with connect("default", "t", {}) as other:
                rows = other.execute("SELECT key, generation FROM compute_work").fetchall()
            seen.append(dict(rows))

        forget = transaction.wake_with(wake)
        try:
            with transaction.transaction():
                transaction.enqueue([ROW])
        finally:
            forget()
        assert seen == [{"one": 1}]
        assert connection.get_autocommit()

    def test_a_deferred_constraint_that_fails_undoes_everything(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TEMP TABLE late (n int PRIMARY KEY, m int REFERENCES late DEFERRABLE INITIALLY DEFERRED)"
            )
        with pytest.raises(IntegrityError), transaction.transaction(), connection.cursor() as cursor:
            transaction.enqueue([ROW])
            cursor.execute("INSERT INTO late VALUES (1, 2)")
        assert queued() == {}
        with transaction.transaction():
            transaction.enqueue([OTHER])
        assert queued() == {"two": 1}

    def test_it_sends_no_commit_of_its_own(self) -> None:
        with CaptureQueriesContext(connection) as captured, transaction.transaction():
            transaction.enqueue([ROW])
        assert [query["sql"].rstrip().endswith("; COMMIT") for query in captured if "compute_work" in query["sql"]] == [
            True
        ]
