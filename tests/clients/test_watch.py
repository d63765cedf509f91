"""Watches over REST: what they show, when they look, how they go on and how they end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from better_compute.client import AsyncTransport, ConnectionLost, Transport, Watching, attempts, errors
from better_compute.client.watching import Pace
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import Running
from tests.clients.scripted import Scripted, Server, problem
from tests.clients.test_python import run

FAST = Watching(every_s=0.01, at_most_s=0.02)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(attempts, "FIRST_WAIT_S", 0.001)
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def transport(server: Server) -> Iterator[Transport]:
    with Transport(server.url, "token", retries=0) as made:
        yield made


def page(*ids: str, cursor: str | None = None, state: str = "new") -> Scripted:
    return 200, {}, {"items": [{"id": id, "state": state} for id in ids], "nextCursor": cursor}


def told(change: Any) -> str:
    return f"{change.kind} {change.id}"


def test_an_answer_is_shown_when_it_changes(server: Server, transport: Transport) -> None:
    server.script = [(200, {}, {"state": state}) for state in ("new", "new", "old", "old", "gone")]
    shown = list(islice(transport.watch("a.get", {}, watching=FAST), 3))
    assert [each["state"] for each in shown] == ["new", "old", "gone"]
    assert len(server.seen) == 5


def test_a_list_shows_what_came_changed_and_went(server: Server, transport: Transport) -> None:
    server.script = [page("1", "2", cursor="c"), page("3"), page("1", "3"), page("1", "3", state="old"), page("3")]
    watch = transport.watch("a.list", {"kind": "k"}, listed=True, watching=FAST)
    seen = [told(next(watch)) for _ in range(6)]
    assert seen == ["added 1", "added 2", "added 3", "gone 2", "changed 1", "changed 3"]
    change = next(watch)
    assert (change.kind, change.id, change.item, change.before) == ("gone", "1", None, {"id": "1", "state": "old"})
    assert server.bodies[1] == b'{"kind":"k","cursor":"c"}'


def test_a_later_watch_goes_on_where_one_stood(server: Server, transport: Transport) -> None:
    server.script = [page("1", "2")]
    first = transport.watch("a.list", {}, listed=True, watching=FAST)
    next(first)
    position = first.position
    server.script = [page("1", "3")]
    going_on = transport.watch("a.list", {}, listed=True, watching=Watching(since=position))
    assert told(next(going_on)) == "added 3"
    assert going_on.position != position


@pytest.mark.parametrize("since", ["rubbish!", "", "AAAA"])
def test_a_position_of_something_else_is_refused(transport: Transport, since: str) -> None:
    since = since or transport.watch("a.list", {"kind": "other"}).position
    with pytest.raises(ValueError, match="position"):
        transport.watch("a.list", {"kind": "mine"}, watching=Watching(since=since))


def test_a_server_that_is_away_for_a_while_is_waited_for(server: Server, transport: Transport) -> None:
    away: list[Scripted] = [(0, {}, None), problem("STORAGE_BUSY", 503), (502, {}, b"")]
    server.script = [page("1"), *away, page("1", "2")]
    watch = transport.watch("a.list", {}, listed=True, watching=FAST)
    assert [told(next(watch)) for _ in range(2)] == ["added 1", "added 2"]


def test_an_expired_cursor_begins_the_look_again(server: Server, transport: Transport) -> None:
    server.script = [page("1", cursor="c"), problem("CURSOR_EXPIRED", 410), page("1", "2")]
    watch = transport.watch("a.list", {}, listed=True, watching=FAST)
    assert [told(next(watch)) for _ in range(2)] == ["added 1", "added 2"]


def test_patience_ends(server: Server, transport: Transport) -> None:
    server.script = [(0, {}, None)] * 100
    with pytest.raises(ConnectionLost):
        next(transport.watch("a.get", {}, watching=Watching(every_s=0.01, at_most_s=0.02, patience_s=0.2)))


def test_what_waiting_does_not_mend_is_raised(server: Server, transport: Transport) -> None:
    server.script = [(200, {}, {"state": "new"}), problem("NOT_FOUND", 404)]
    watch = transport.watch("a.get", {}, watching=FAST)
    next(watch)
    with pytest.raises(errors.NotFound):
        next(watch)


def test_the_servers_wait_is_kept(server: Server, transport: Transport) -> None:
    limited = 429, {"Retry-After": "1"}, {"code": "RATE_LIMITED"}
    server.script = [limited, (200, {}, {"state": "new"})]
    began = time.monotonic()
    next(transport.watch("a.get", {}, watching=FAST))
    assert time.monotonic() - began >= 1


def test_two_items_of_one_id_are_refused(server: Server, transport: Transport) -> None:
    server.script = [page("1", "1")]
    with pytest.raises(ValueError, match="identified by '1'"):
        next(transport.watch("a.list", {}, listed=True, watching=FAST))


def test_items_without_an_id_need_to_be_identified(server: Server, transport: Transport) -> None:
    server.script = [(200, {}, {"items": [{"key": "k"}]})] * 2
    with pytest.raises(ValueError, match="`identify`"):
        next(transport.watch("a.list", {}, listed=True, watching=FAST))
    watch = transport.watch("a.list", {}, listed=True, identify=lambda item: str(item["key"]), watching=FAST)
    assert next(watch).id == "k"


def test_another_thread_stops_a_watch_that_waits(server: Server, transport: Transport) -> None:
    server.script = [(200, {}, {"state": "new"})]
    watch = transport.watch("a.get", {}, watching=Watching(every_s=60, at_most_s=60))
    next(watch)
    threading.Timer(0.2, watch.stop).start()
    assert list(watch) == []


def test_until_answers_what_was_waited_for_or_raises(server: Server, transport: Transport) -> None:
    server.script = [(200, {}, {"state": state}) for state in ("new", "old")]
    assert transport.watch("a.get", {}, watching=FAST).until(lambda it: it["state"] == "old") == {"state": "old"}
    server.script = [(200, {}, {"state": "new"})] * 1000
    with pytest.raises(TimeoutError, match=r"within 0\.2 s"):
        transport.watch("a.get", {}, watching=FAST).until(lambda it: it["state"] == "old", timeout_s=0.2)


def test_the_wait_grows_while_nothing_changes_and_no_two_watches_keep_step() -> None:
    pace = Pace(Watching(every_s=1, at_most_s=4))
    bare = []
    for changed in (True, False, False, False, False, True):
        pace.after(changed)
        bare.append(pace.wait_s)
    assert bare == [1, 1.5, 2.25, 3.375, 4, 1]
    waits = {pace.after(True) for _ in range(50)}
    assert len(waits) > 40
    assert all(0.75 <= wait <= 1.25 for wait in waits)


@pytest.mark.parametrize(("every_s", "at_most_s"), [(0, 1), (-1, 1), (2, 1)])
def test_a_pace_that_makes_no_sense_is_refused(every_s: float, at_most_s: float) -> None:
    with pytest.raises(ValueError, match="0 < every_s <= at_most_s"):
        Watching(every_s=every_s, at_most_s=at_most_s)


def test_a_watch_under_asyncio_shows_stops_and_is_cancelled(server: Server) -> None:
    async def watching() -> list[str]:
        async with AsyncTransport(server.url, "token", retries=0) as transport:
            server.script = [page("1"), (0, {}, None), page("1", "2"), page("1", "2", "3")]
            slow = Watching(every_s=0.01, at_most_s=0.02)
            seen = []
            async with transport.watch("a.list", {}, listed=True, watching=slow) as watch:
                async for change in watch:
                    seen.append(told(change))
                    if len(seen) == 2:
                        break
            going_on = Watching(every_s=60, at_most_s=60, since=watch.position)
            later = transport.watch("a.list", {}, listed=True, watching=going_on)
            seen.append(told(await anext(later)))
            task = asyncio.create_task(anext(later))  # type: ignore[arg-type]
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            later.stop()
            seen += [told(change) async for change in later]
            return seen

    assert run(watching()) == ["added 1", "added 2", "added 3"]


def test_until_under_asyncio_has_its_time(server: Server) -> None:
    async def watching() -> Any:
        async with AsyncTransport(server.url, "token", retries=0) as transport:
            server.script = [(200, {}, {"state": "new"})] * 1000
            watch = transport.watch("a.get", {}, watching=FAST)
            return await watch.until(lambda it: it["state"] == "old", timeout_s=0.2)

    with pytest.raises(TimeoutError, match=r"within 0\.2 s"):
        run(watching())


@pytest.mark.django_db(transaction=True)
def test_the_generated_clients_watch_a_running_installation(running: Running, generated: Any) -> None:
    def enqueue(key: str) -> None:
        with transaction.transaction():
            transaction.enqueue([WorkRow("acme.widgets", key, -1)])

    enqueue("t1")
    with Transport(running.url, running.token) as transport:
        client = generated.Client(transport)
        watch = client.work.list_watch(identify=lambda queued: f"{queued.kind}/{queued.key}", limit=1, watching=FAST)
        first = next(watch)
        assert (first.kind, first.id, first.item.generation) == ("added", "acme.widgets/t1", 1)
        enqueue("t1")
        enqueue("t2")
        assert [told(next(watch)) for _ in range(2)] == ["changed acme.widgets/t1", "added acme.widgets/t2"]
        count = client.plugins.acme.widgets.count_watch(tenant_id="t1", watching=FAST)
        assert next(count).count == 0
        client.plugins.acme.widgets.poke(tenant_id="t1", widget_id="w1")
        assert count.until(lambda counted: counted.count == 1, timeout_s=30).count == 1

    async def watch_again() -> int:
        async with AsyncTransport(running.url, running.token) as transport:
            widgets = generated.AsyncClient(transport).plugins.acme.widgets
            return int((await anext(widgets.count_watch(tenant_id="t1"))).count)

    assert run(watch_again()) == 1
