"""The first and the last message of a transaction carry more than one statement, and a dead session costs no call."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import DataError, OperationalError, connection, transaction as django_transaction
from django.test.utils import CaptureQueriesContext

from better_compute.store import opening, outbox, transaction
from better_compute.store.session import connect
from better_compute.store.work import WorkRow

pytestmark = pytest.mark.django_db(transaction=True)

ROW = WorkRow("acme.widgets", "one", -1)


@contextmanager
def messages() -> Iterator[list[str]]:
    """The messages that are sent to PostgreSQL meanwhile, as libpq traces them."""
    sent: list[str] = []
    connection.ensure_connection()
    with tempfile.TemporaryFile("w+") as trace:
        connection.connection.pgconn.trace(trace.fileno())
        try:
            yield sent
        finally:
            connection.connection.pgconn.untrace()
            trace.seek(0)
            sent += [line for line in trace if "\tF\t" in line and "Terminate" not in line]


def kill_the_session() -> None:
    connection.ensure_connection()
    with connect("default", "t", {}) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])


def rows(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


def first() -> None:
    assert opening.fetch_first("default", "SELECT %s", ["first"]) == ("first",)


def publish(subject: str = "s") -> None:
    outbox.insert(type="a.b", tenant_id="t1", subject=subject, data={})


def test_begin_and_the_first_statement_are_one_message() -> None:
    connection.ensure_connection()
    with CaptureQueriesContext(connection) as captured, messages() as sent, transaction.transaction(first=first):
        publish()
        transaction.enqueue([ROW])
    assert len(sent) == 2, sent
    last = next(each["sql"] for each in captured.captured_queries if "compute_outbox" in each["sql"])
    assert last.index("compute_outbox") < last.index("compute_work") < last.index("COMMIT")
    assert (rows("compute_outbox"), rows("compute_work")) == (1, 1)


def test_a_first_statement_that_is_the_last_one_too_is_one_message() -> None:
    connection.ensure_connection()
    with messages() as sent, transaction.transaction():
        publish()
    assert len(sent) == 1, sent
    assert rows("compute_outbox") == 1


def test_what_comes_after_a_roll_back_of_ones_own_begins_a_transaction_again() -> None:
    with pytest.raises(ZeroDivisionError), transaction.transaction(first=first), connection.cursor() as cursor:
        cursor.execute("ROLLBACK")
        cursor.execute("INSERT INTO compute_outbox (type, tenant_id, subject, data) VALUES ('a.b', 't', 's', '{}')")
        raise ZeroDivisionError
    assert rows("compute_outbox") == 0


def test_a_session_that_died_while_it_lay_idle_is_replaced() -> None:
    kill_the_session()
    with transaction.transaction(first=first):
        publish()
    assert rows("compute_outbox") == 1


def test_a_session_that_dies_after_the_first_statement_is_not() -> None:
    calls: list[int] = []

    def counted() -> None:
        calls.append(1)
        first()

    with pytest.raises(OperationalError), transaction.transaction(first=counted):
        kill_the_session()
        rows("compute_outbox")
    assert (len(calls), connection.get_autocommit()) == (1, True)


def test_a_first_statement_that_fails_on_a_session_that_lives_is_not_made_again() -> None:
    calls = []

    def fails() -> None:
        calls.append(1)
        opening.fetch_first("default", "SELECT pg_advisory_xact_lock_shared(1 / %s)", [0])

    with pytest.raises(DataError), transaction.transaction(first=fails):
        pass
    assert calls == [1]


def test_events_of_a_savepoint_that_is_rolled_back_go_with_it() -> None:
    with transaction.transaction():
        publish()
        with pytest.raises(ZeroDivisionError), django_transaction.atomic():
            publish()
            raise ZeroDivisionError
    assert rows("compute_outbox") == 1


def test_no_more_is_held_back_than_the_bound_and_the_order_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "MOST_HELD", 2)
    with transaction.transaction(first=first):
        publish("a")
        publish("b")
        assert rows("compute_outbox") == 0
        with pytest.raises(ZeroDivisionError), django_transaction.atomic():
            publish("undone")
            raise ZeroDivisionError
        publish("c")
        assert rows("compute_outbox") == 3
        publish("d")
    with connection.cursor() as cursor:
        cursor.execute("SELECT subject FROM compute_outbox ORDER BY id")
        assert [subject for (subject,) in cursor.fetchall()] == ["a", "b", "c", "d"]


def test_in_a_hosts_transaction_an_event_is_written_at_once() -> None:
    with django_transaction.atomic():
        publish()
        assert rows("compute_outbox") == 1
    assert rows("compute_outbox") == 1


def test_a_dry_runs_check_sends_what_is_held_back() -> None:
    with pytest.raises(ZeroDivisionError), transaction.transaction(first=first):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL compute.transaction = 'open'")
        publish()
        transaction.check_constraints()
        assert rows("compute_outbox") == 1
        raise ZeroDivisionError
    assert rows("compute_outbox") == 0
