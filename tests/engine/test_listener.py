"""The listener outlives whatever it hears, and notices when it hears nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from threading import Thread

import pytest

from better_compute.engine import listener as module
from better_compute.engine.listener import Listener
from better_compute.store import wakeups
from better_compute.store.session import connect
from better_compute.store.wakeups import Pair

from .conftest import eventually

pytestmark = pytest.mark.django_db(transaction=True)


class Heard:
    """What a listener on a thread of its own passed on."""

    def __init__(self) -> None:
        self.work: list[list[Pair] | None] = []
        self.members = 0
        self.listener = Listener("default", self.work.append, self._note)
        self._thread = Thread(target=self.listener.run)
        self._thread.start()

    def _note(self) -> None:
        self.members += 1

    def end(self) -> None:
        self.listener.stop()
        self._thread.join(10)


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.end()


def say(channel: str, payload: str = "") -> None:
    with connect("default", "test", {}) as other:
        wakeups.notify(other, channel, payload)


@pytest.mark.parametrize("payload", ["nonsense", "acme.widgets", "acme.widgets one\nacme.widgets 2", " "])
def test_what_cannot_be_read_means_everywhere_and_ends_nothing(heard: Heard, payload: str) -> None:
    eventually(lambda: heard.work == [None])
    say(wakeups.WORK_CHANNEL, payload)
    say(wakeups.WORK_CHANNEL, "acme.widgets 2")
    eventually(lambda: heard.work == [None, None, [("acme.widgets", 2)]])


def test_it_looks_everywhere_once_it_listens_and_passes_on_both_channels(heard: Heard) -> None:
    eventually(lambda: heard.work == [None] and heard.members == 1)
    say(module.MEMBERS_CHANNEL)
    eventually(lambda: heard.members == 2)


def test_one_that_hears_nothing_notifies_itself(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    notify = wakeups.notify

    def note(cursor: object, channel: str, payload: str = "") -> None:
        asked.append(channel)
        notify(cursor, channel, payload)

    monkeypatch.setattr(wakeups, "notify", note)
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.0)
    # An answer that did not come would be noticed in the look after the question.
    eventually(lambda: len(asked) >= 3)
    assert len(set(asked)) == 1
    assert set(asked).isdisjoint({wakeups.WORK_CHANNEL, module.MEMBERS_CHANNEL})
    assert heard.work == [None]
    assert heard.listener.up


def test_one_whose_own_notification_does_not_arrive_connects_anew(
    heard: Heard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wakeups, "notify", lambda cursor, channel, payload="": None)
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    # As long as the next connection may take to answer at all.
    monkeypatch.setattr(module, "ANSWER_SECONDS", 1.0)
    with caplog.at_level(logging.WARNING, module.__name__):
        eventually(lambda: len(heard.work) >= 2)
    assert "no notification arrives; is a transaction pooler in between?" in caplog.text


def test_one_that_listened_comes_back_soon(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float | None] = []
    wait = heard.listener._stopping.wait
    monkeypatch.setattr(heard.listener._stopping, "wait", lambda timeout=None: waits.append(timeout) or wait(0.01))
    for times in range(1, 5):
        eventually(lambda times=times: len(heard.work) == times and heard.listener.up)
        with connect("default", "test", {}) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'compute-listen' AND datname = current_database()"
            )
    eventually(lambda: len(heard.work) == 5)
    assert waits == [module.RETRY_SECONDS[0]] * 4
