"""The watchdog cuts a connection whose statement hangs, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from time import monotonic

import psycopg
import pytest

from better_compute import conf
from better_compute.engine.dispatch import Dispatcher
from better_compute.engine.turns import Turns
from better_compute.engine.watchdog import Watchdog
from better_compute.store.session import Session

from .conftest import ask, eventually

pytestmark = pytest.mark.django_db(transaction=True)


class Hanging:
    """A statement that would take a minute, on a thread."""

    def __init__(self) -> None:
        self.session = Session("default", "test-hanging", {})
        self.raised: list[psycopg.Error] = []
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        try:
            with self.session.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(60)")
        except psycopg.Error as error:
            self.raised.append(error)

    def start(self) -> None:
        self._thread.start()
        active = "SELECT pid FROM pg_stat_activity WHERE application_name = 'test-hanging' AND state = 'active'"
        eventually(lambda: ask(f"{active} AND query LIKE '%%pg_sleep%%'"))

    def end(self) -> None:
        ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'test-hanging'")
        self._thread.join(10)
        self.session.close()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    hanging = Hanging()
    hanging.start()
    yield hanging
    hanging.end()


def watchdog(session: Session, settings: conf.Worker) -> Watchdog:
    return Watchdog([], Turns(Dispatcher([], settings), session, settings), [session], settings)


def test_a_statement_that_hangs_is_cut_off(hanging: Hanging) -> None:
    began = monotonic()
    looking = watchdog(hanging.session, conf.Worker(ttl_ms=400, tick_ms=100))
    while not hanging.raised:
        looking.look()
    assert monotonic() - began < 10
    with hanging.session.cursor() as cursor:
        assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_within_its_time_is_not(hanging: Hanging) -> None:
    watchdog(hanging.session, conf.Worker(ttl_ms=600_000)).look()
    assert hanging.session.cut_if_stuck(0.0)
    eventually(lambda: hanging.raised)


def test_a_session_that_does_nothing_is_not_cut() -> None:
    session = Session("default", "test-idle", {})
    assert not session.cut_if_stuck(0.0)
    with session.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert not session.cut_if_stuck(0.0)
    session.close()
