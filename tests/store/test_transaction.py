"""Our transaction: durable, work flushed last, savepoints drop work, nothing swallowed."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest
from django.db import IntegrityError, InternalError, connection, connections, transaction as django_transaction

from better_compute.contract.errors import ComputeError
from better_compute.store import transaction
from better_compute.store.session import guard_thread
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
