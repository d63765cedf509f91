"""No process holds more connections than it states, and none states many more than it holds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from socket import socket
from threading import Event, Thread

import pytest
from django.contrib.auth import get_user_model

from better_compute.envelope import tokens
from better_compute.store.session import PLANNING, connect

from .conftest import ROOT, Worker, ask, enqueue, eventually, told
from .test_worker import ready

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 3


def others() -> set[int]:
    """The backends of other processes on the test database."""
    return {
        pid
        for (pid,) in ask(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
    }


class Count:
    """The most connections that were seen at once, but for those that were there before."""

    def __init__(self) -> None:
        self._before = others()
        self.most = 0

    def look(self) -> int:
        self.most = max(self.most, len(others() - self._before))
        return self.most


def stated(pid: int) -> int:
    return int(eventually(lambda: ask("SELECT connections FROM compute_processes WHERE pid = %s", pid), 30)[0][0])


def test_statements_of_the_queue_are_never_compiled() -> None:
    # With sequential scans ruled out, a server with JIT before PostgreSQL 18 would compile each of them for seconds.
    with closing(connect("default", "test", {"jit": "on"} | PLANNING)) as connection:
        assert connection.execute("SHOW jit").fetchone() == ("off",)


def test_a_worker_under_load_holds_what_it_states(start_worker: Callable[..., Worker]) -> None:
    count = Count()
    worker = start_worker(PLANT_RESYNC_MS="20", PLANT_CONN_MAX_AGE="60")
    ready(worker)
    says = stated(worker.pid)
    # Threads and a spare one, queue, members, listener, resync with its key source, presence, NOTIFY and Celery.
    assert says == 5 + 8
    enqueue("plant.waking", *[f"k{number}" for number in range(40)])
    # Presence is said in an instant, and the plant serves no key source.
    eventually(lambda: count.look() >= says - 2)
    for _ in range(50):
        count.look()
    eventually(lambda: told("ran", "k1"))
    assert says - 2 <= count.most <= says


def listens(port: int) -> bool:
    with closing(socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def serve(process_env: dict[str, str], tmp_path: Path) -> Iterator[Callable[[], tuple[int, int]]]:
    """Start the API with ``compute_serve`` and return its port and the pid of the process that serves."""
    servers: list[subprocess.Popen[bytes]] = []

    def start() -> tuple[int, int]:
        with closing(socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        env = {**process_env, "DJANGO_SETTINGS_MODULE": "tests.engine.plant_settings", "PLANT_CONN_MAX_AGE": "60"}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "manage.py", "compute_serve", "--roles", "api", "--threads", str(THREADS)]
        with (tmp_path / "api.log").open("w") as log:
            servers.append(subprocess.Popen([*command, "--port", str(port)], env=env, cwd=ROOT, stdout=log, stderr=log))
        [(pid,)] = eventually(lambda: ask("SELECT pid FROM compute_processes WHERE role = 'api'"), 30)
        eventually(lambda: listens(port))
        return port, pid

    yield start
    for server in servers:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def test_an_api_under_load_holds_what_it_states(serve: Callable[[], tuple[int, int]]) -> None:
    user = get_user_model().objects.create_superuser("load")
    secret, _ = tokens.create(user=user, label="load", tenant_id=None)
    count = Count()
    port, pid = serve()
    says = stated(pid)
    # Threads, presence, NOTIFY and Celery.
    assert says == THREADS + 3
    enough = Event()
    failed: list[BaseException] = []

    def load(number: int) -> None:
        calls = 0
        while not enough.is_set() and not failed:
            calls += 1
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/api/compute/plugins/acme/widgets/poke",
                data=json.dumps({"tenantId": "t1", "widgetId": f"w{number}-{calls}"}).encode(),
                headers={"Authorization": f"Bearer {secret}", "Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                    response.read()
            except BaseException as error:
                failed.append(error)

    clients = [Thread(target=load, args=(number,)) for number in range(3 * THREADS)]
    for client in clients:
        client.start()
    try:
        # Presence is said in an instant.
        eventually(lambda: count.look() >= says - 1 or failed)
        for _ in range(50):
            count.look()
    finally:
        enough.set()
        for client in clients:
            client.join(60)
    assert failed == []
    assert says - 1 <= count.most <= says


def test_an_api_whose_process_is_killed_answers_again_by_itself(serve: Callable[[], tuple[int, int]]) -> None:
    user = get_user_model().objects.create_superuser("load")
    secret, _ = tokens.create(user=user, label="load", tenant_id=None)
    port, killed = serve()
    url = f"http://127.0.0.1:{port}/api/compute/system/version"

    def answered() -> bool:
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {secret}"})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return bool(response.status == 200)
        except OSError:
            return False

    eventually(answered, 60)
    os.kill(killed, signal.SIGKILL)
    eventually(answered, 60)
    serving = {pid for (pid,) in ask("SELECT pid FROM compute_processes WHERE role = 'api'")}
    assert serving - {killed}
