"""Wake-ups: gathered, off the committing thread, and unable to slow it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery

import example_project
from better_compute.engine import wakeup
from better_compute.engine.celery import DRAIN, Hints
from better_compute.engine.queues import name_of
from better_compute.engine.wakeup import Coalescer, notifier
from better_compute.store import leases, members, transaction, wakeups
from better_compute.store.session import connect
from better_compute.store.work import WorkRow

from .conftest import eventually


@pytest.fixture
def sent() -> list[set[tuple[str, int]]]:
    return []


@pytest.fixture
def coalescer(sent: list[set[tuple[str, int]]]) -> Iterator[Coalescer]:
    coalescer = Coalescer("test", sent.append)
    yield coalescer
    coalescer.rest()


def test_a_single_note_is_sent_at_once(coalescer: Coalescer, sent: list[set[tuple[str, int]]]) -> None:
    coalescer.note("k", 1)
    eventually(lambda: sent == [{("k", 1)}], 2)


def test_a_burst_is_a_handful_of_messages(coalescer: Coalescer, sent: list[set[tuple[str, int]]]) -> None:
    for number in range(1_000):
        coalescer.note("k", number % 256)
    eventually(lambda: set().union(*sent) == {("k", shard) for shard in range(256)}, 2)
    assert len(sent) < 20


def test_a_sender_that_blocks_does_not_block_who_commits() -> None:
    released = Event()
    coalescer = Coalescer("test", lambda pairs: released.wait(30) and None)
    try:
        coalescer.note("k", 1)
        began = time.monotonic()
        for _ in range(1_000):
            coalescer.note("k", 2)
        assert time.monotonic() - began < 15
    finally:
        released.set()
        coalescer.rest()


def test_after_a_failure_hints_rest_and_then_go_on(sent: list[set[tuple[str, int]]]) -> None:
    fails = [True]

    def send(pairs: set[tuple[str, int]]) -> None:
        if fails:
            fails.clear()
            raise OSError("down")
        sent.append(pairs)

    coalescer = Coalescer("test", send)
    coalescer.note("k", 1)
    eventually(lambda: coalescer.failed == 1, 2)

    def again() -> bool:
        coalescer.note("k", 2)
        return bool(sent)

    eventually(again, 5)
    coalescer.rest()


def test_pairs_survive_the_payload_and_many_become_everywhere() -> None:
    pairs = [("a.b", -1), ("n", 255)]
    assert wakeups.decode(wakeups.encode(pairs)) == pairs
    assert wakeups.decode(wakeups.encode([("n", shard) for shard in range(256)])) is None
    assert len(wakeups.encode([("k" * 64, shard) for shard in range(80)])) < 8_000


@pytest.mark.django_db(transaction=True)
def test_a_commit_is_heard_by_whoever_listens() -> None:
    with connect("default", "test", {}) as listener:
        wakeups.listen(listener, [wakeups.WORK_CHANNEL])
        with transaction.transaction():
            transaction.enqueue([WorkRow("t.k", "key", 7)])
        heard = list(wakeups.received(listener, timeout=5))
    assert [(channel, wakeups.decode(payload)) for channel, payload in heard] == [(wakeups.WORK_CHANNEL, [("t.k", 7)])]
    notifier.rest()


@pytest.mark.django_db(transaction=True)
def test_a_process_that_serves_the_example_sends_hints_to_the_holder() -> None:
    # As for a server: the project is imported with its settings, and nothing else names its Celery app.
    celery_app: Celery = example_project.celery_app
    member, lease = uuid4().hex, "singleton:acme.widgets"
    with connect("default", "test", {}) as other, other.cursor() as cursor:
        members.register(
            cursor, id=member, role="controllers", host="h", pid=1, ttl_ms=60_000, connections=1, kinds=["acme.widgets"]
        )
        leases.ensure(cursor, [lease])
        leases.acquire(cursor, member, [lease])
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", "k", -1)])

    def hint() -> Any:
        with celery_app.connection_for_read() as broker, broker.SimpleQueue(name_of(member)) as queue:
            try:
                return queue.get(block=False)
            except queue.Empty:
                return None

    received = eventually(hint, 5)
    assert received.headers["task"] == DRAIN
    assert received.payload[0] == [[["acme.widgets", -1]]]
    received.ack()
    wakeup.rest()


@pytest.mark.django_db(transaction=True)
def test_a_forked_process_opens_a_connection_of_its_own_for_hints() -> None:
    hints = Hints(Celery("test"))
    assert hints._by_holder({("t.k", -1)}) == {}
    child = os.fork()
    if child == 0:
        os._exit(0 if hints._session is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert hints._by_holder({("t.k", -1)}) == {}
    hints.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("broker", ["redis://127.0.0.1:9/0", "redis://10.255.255.1:6379/0"])
def test_a_dead_or_silent_broker_does_not_slow_a_commit(broker: str) -> None:
    app = Celery("test", broker=broker)
    hints = Hints(app)
    coalescer = Coalescer("test", hints.send, hints.close)
    with connect("default", "test", {}) as other:
        members.register(
            other, id="m", role="controllers", host="h", pid=1, ttl_ms=60_000, connections=1, kinds=["t.k"]
        )
        leases.ensure(other, ["singleton:t.k"])
    with connect("default", "test", {}) as other:
        leases.acquire(other.cursor(), "m", ["singleton:t.k"])
    stop = transaction.wake_with(coalescer.note)
    try:
        began = time.monotonic()
        for number in range(50):
            with transaction.transaction():
                transaction.enqueue([WorkRow("t.k", f"k{number}", -1)])
        assert (time.monotonic() - began) / 50 < 0.5
    finally:
        stop()
