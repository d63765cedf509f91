"""A connection of the engine's own never waits for ever, whatever its server does or does not do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from threading import Thread
from time import monotonic
from typing import Any

import django.db
import psycopg
import pytest
from django.db import connection

from better_compute.store.session import Session, Unanswered, connect, guard_thread, is_lost
from tests.engine.conftest import ask, eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session("default", "test-hanging", {}, patience=0.3)
    yield session
    session.close()
    ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'test-hanging' AND datname = current_database()"
    )


def test_an_exchange_without_an_answer_ends_and_the_next_use_connects_anew(session: Session) -> None:
    with session.cursor() as cursor:
        first = cursor.connection.info.backend_pid
    began = monotonic()
    with pytest.raises(Unanswered, match=r"has not answered for 0\.3 s") as raised, session.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(60)")
    assert 0.3 <= monotonic() - began < 5
    assert is_lost(raised.value)
    with session.cursor() as cursor:
        assert cursor.connection.info.backend_pid != first
        assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_an_answer_within_its_time_is_given_whatever_the_session_has_waited_for_before(session: Session) -> None:
    with session.cursor() as cursor:
        for _ in range(5):
            cursor.execute("SELECT pg_sleep(0.1)")
        assert cursor.execute("SELECT count(*) FROM generate_series(1, 10000)").fetchone() == (10_000,)


def test_notifications_are_waited_for_longer_than_an_answer() -> None:
    with connect("default", "test-hanging", {}, 0.2) as listening:
        listening.execute('LISTEN "test"')
        assert list(listening.notifies(timeout=0.1)) == []
        ask("SELECT pg_notify('test', 'heard')")
        eventually(lambda: [each.payload for each in listening.notifies(timeout=0.1, stop_after=1)] == ["heard"])


def test_a_session_of_the_engine_finds_a_dead_peer_soon_and_refuses_a_standby() -> None:
    with connect("default", "test-hanging", {}) as opened:
        parameters = opened.info.get_parameters()
    wanted = {"tcp_user_timeout": "10000", "keepalives_idle": "5", "target_session_attrs": "read-write"}
    assert {name: parameters[name] for name in wanted} == wanted


def on_a_handlers_thread(ask_there: Callable[[], Any]) -> Any:
    """What ``ask_there`` answers or raises on a thread like a worker's."""
    answers: list[Any] = []

    def handle() -> None:
        timeouts = {"idle_in_transaction_session_timeout": "5s", "lock_timeout": "4s", "statement_timeout": "60s"}
        guard_thread("default", timeouts, patience=0.3)
        try:
            answers.append(ask_there())
        except Exception as error:
            answers.append(error)
        finally:
            connection.close()

    thread = Thread(target=handle)
    thread.start()
    thread.join(20)
    [answer] = answers
    return answer


def test_a_handlers_connection_has_every_timeout() -> None:
    def timeouts() -> list[str]:
        names = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
        with connection.cursor() as cursor:
            found = []
            for name in (*names, "default_transaction_read_only"):
                cursor.execute(f"SHOW {name}")
                found.append(cursor.fetchone()[0])
        parameters = connection.connection.info.get_parameters()
        return [*found, parameters["tcp_user_timeout"], parameters["target_session_attrs"]]

    assert on_a_handlers_thread(timeouts) == ["5s", "4s", "1min", "on", "10000", "read-write"]


def test_a_handlers_exchange_has_a_deadline_and_the_next_one_connects_anew() -> None:
    def hang() -> Any:
        with pytest.raises(django.db.OperationalError) as raised, connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")
        connection.close_if_unusable_or_obsolete()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return type(raised.value.__cause__), cursor.fetchone()

    try:
        assert on_a_handlers_thread(hang) == (Unanswered, (1,))
    finally:
        ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE '%%sleep(60)' AND state = 'active' AND datname = current_database()"
        )


def through_the_threads_own(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def through_a_copy(sql: str) -> None:
    copy = connection.copy()
    try:
        with copy.cursor() as cursor:
            cursor.execute(sql)
    finally:
        copy.close()


def through_another_thread(sql: str) -> None:
    def write() -> None:
        try:
            through_the_threads_own(sql)
        finally:
            connection.close()

    asyncio.run(asyncio.to_thread(write))


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("through", [through_the_threads_own, through_a_copy, through_another_thread])
def test_every_connection_of_a_handler_is_read_only(
    settings: Any, through: Callable[[str], None], pooled: bool
) -> None:
    settings.COMPUTE = {**settings.COMPUTE, "WORKER": {"POOLED": pooled}}
    error = on_a_handlers_thread(lambda: through("UPDATE compute_clock SET anchored_at = anchored_at"))
    assert isinstance(error.__cause__, psycopg.errors.ReadOnlySqlTransaction)
    assert on_a_handlers_thread(lambda: through("SELECT 1")) is None


def test_a_failed_statement_is_no_lost_connection(session: Session) -> None:
    with session.cursor() as cursor:
        backend = cursor.connection.info.backend_pid
    with pytest.raises(psycopg.errors.DivisionByZero), session.cursor() as cursor:
        cursor.execute("SELECT 1/0")
    with session.cursor() as cursor:
        assert cursor.connection.info.backend_pid == backend
