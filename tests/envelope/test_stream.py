"""The stream process as ``compute_serve --roles stream`` runs it: a real server, asked over HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from better_compute.devtools.ports import free_port
from tests.engine.conftest import ROOT, ask, eventually
from tests.warm import Warm

pytestmark = pytest.mark.django_db(transaction=True)

STATED = "SELECT pid, connections FROM compute_processes WHERE role = 'stream'"


class Server:
    """One stream process."""

    def __init__(self, warm: Warm, env: dict[str, str], log: Path) -> None:
        self.port, self.log = free_port(), log
        command = ["manage.py", "compute_serve", "--roles", "stream", "--port", str(self.port)]
        with log.open("w") as file:
            self.process = warm.python(*command, folder=ROOT, environment=env, log=file)

    def get(self, path: str, *, timeout: float = 30, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of ``path``."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, dict(refused.headers), refused.read()

    def is_up(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.get("/livez")[0] == 200
        except OSError:
            return False


Start = Callable[..., Server]


@pytest.fixture
def start(process_env: dict[str, str], tmp_path: Path, warm_project: Warm) -> Iterator[Start]:
    servers: list[Server] = []

    def start(**environment: str) -> Server:
        env = {**process_env, "DJANGO_SETTINGS_MODULE": "tests.engine.plant_settings", **environment}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        servers.append(Server(warm_project, env, tmp_path / f"stream{len(servers)}.log"))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def backends() -> int:
    """Connections of others to the test database."""
    return int(
        ask(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )[0][0]
    )


def test_it_is_ready_states_its_connections_and_holds_none_while_it_waits(start: Start) -> None:
    before = backends()
    server = start()
    eventually(server.is_up, 60)
    for _ in range(5):
        assert server.get("/readyz")[0] == 200
    # The thread that asks, presence, NOTIFY and Celery.
    assert ask(STATED) == [(server.process.pid, 4)]
    eventually(lambda: backends() == before)


def test_it_refuses_what_it_does_not_serve_and_ends_within_a_second_of_sigterm(start: Start) -> None:
    server = start()
    eventually(server.is_up, 60)
    status, headers, body = server.get("/api/compute/work/list", **{"X-Request-Id": "r-1"})
    told = json.loads(body)
    assert (status, headers["content-type"]) == (404, "application/problem+json")
    assert (told["code"], told["instance"], told["mend"]) == (
        "NOT_FOUND",
        "r-1",
        "Calls go to the API; this process serves streams.",
    )
    assert server.get("/metrics")[0] == 401
    status, _, body = server.get("/metrics", Authorization=f"Bearer {'t' * 32}")
    assert (status, b"compute_workqueue_depth" in body) == (200, True)
    with socket.create_connection(("127.0.0.1", server.port)) as kept_alive:
        kept_alive.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert kept_alive.recv(1_000).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: not ask(STATED), 10)
        seconds = time.monotonic() - began
    # uvicorn ends as the signal would have ended it.
    assert server.process.wait(10) in (0, -signal.SIGTERM)
    assert seconds < 1


def test_it_refuses_to_start_without_its_database_and_says_why(start: Start) -> None:
    server = start(DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    assert server.process.wait(60) != 0
    assert "cannot start: STORAGE_BUSY: The database 'default' cannot be reached" in server.log.read_text()
    assert "Traceback" not in server.log.read_text()


def test_a_database_that_goes_away_makes_it_unready_and_not_dead(start: Start) -> None:
    server = start()
    eventually(server.is_up, 60)
    [(name,)] = ask("SELECT current_database()")
    ask(f'ALTER DATABASE "{name}" CONNECTION LIMIT 0')
    try:
        # The owner of the test is let in by the connection that it has.
        eventually(lambda: server.get("/readyz")[0] == 503 or is_superuser())
        assert server.get("/livez")[0] == 200
    finally:
        ask(f'ALTER DATABASE "{name}" CONNECTION LIMIT -1')
    eventually(lambda: server.get("/readyz")[0] == 200)


def is_superuser() -> bool:
    return bool(ask("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")[0][0])
