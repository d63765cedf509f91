"""Over a real server and real sockets: what no test client can send."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tests.envelope.conftest import Caller, MakeCaller, count_rows, grown

pytestmark = pytest.mark.django_db(transaction=True)

POKE = "/api/compute/plugins/acme/widgets/poke"
BODY = b'{"tenantId": "t1", "widgetId": "w1"}'


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def port(django_db_setup: None, request: pytest.FixtureRequest) -> Iterator[int]:
    """A granian server of the example project on the test database."""
    env = request.getfixturevalue("server_env")
    port = free_port()
    command = [
        os.path.join(os.path.dirname(sys.executable), "granian"),
        "--interface=wsgi",
        "--host=127.0.0.1",
        f"--port={port}",
        "--blocking-threads=2",
        "--no-ws",
        "example_project.wsgi:application",
    ]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            _wait_until_it_listens(server, port)
            yield port
        finally:
            server.terminate()
            server.wait(30)


@pytest.fixture(scope="module")
def server_env(app_url: str, broker_url: str) -> dict[str, str]:
    """The environment of the server, which runs as the role that owns nothing."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": app_url,
        "CELERY_BROKER_URL": broker_url,
        "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]),
    }


def _wait_until_it_listens(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert server.poll() is None, server.stdout.read() if server.stdout else ""
        with closing(socket.socket()) as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not listen within 60 s")


@pytest.fixture
def poker(make_caller: MakeCaller) -> Caller:
    return make_caller("t1", "compute:acme:poke", "compute:acme:read", name="mary")


def head(caller: Caller, *lines: str, path: str = POKE) -> bytes:
    given = "".join(f"{line}\r\n" for line in lines)
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {caller.secret}\r\n{given}\r\n"
    ).encode()


def exchange(port: int, *chunks: bytes) -> tuple[int, bytes]:
    """Send raw bytes and return the status and the body of what comes back."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as wire:
        for chunk in chunks:
            try:
                wire.sendall(chunk)
            except (BrokenPipeError, ConnectionResetError):
                break
        received = bytearray()
        try:
            while part := wire.recv(65_536):
                received += part
        except ConnectionResetError:
            pass
    assert received, "the server closed the connection without an answer"
    status, _, rest = bytes(received).partition(b"\r\n")
    return int(status.split()[1]), rest.partition(b"\r\n\r\n")[2]


def code(body: bytes) -> str:
    return str(json.loads(body)["code"])


def test_a_call_over_a_real_server_commits_everything(port: int, poker: Caller) -> None:
    before = count_rows()
    status, body = exchange(port, head(poker, f"Content-Length: {len(BODY)}") + BODY)
    assert (status, json.loads(body)) == (200, {"poked": "w1"})
    assert grown(before) == {
        "plg_acme_widget": 1,
        "compute_outbox": 1,
        "compute_work": 1,
        "compute_audit_events": 1,
    }


def test_a_chunked_body_is_411_and_writes_nothing(port: int, poker: Caller) -> None:
    before = count_rows()
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    status, body = exchange(port, head(poker, "Transfer-Encoding: chunked") + chunk)
    assert (status, code(body)) == (411, "LENGTH_REQUIRED")
    assert grown(before) == {}


def test_a_body_of_100_mb_is_refused_without_reading_it(port: int, poker: Caller) -> None:
    before = count_rows()
    begun = time.monotonic()
    status, body = exchange(port, head(poker, "Content-Length: 104857600") + b'{"tenantId": "')
    assert (status, code(body)) == (413, "PAYLOAD_TOO_LARGE")
    assert time.monotonic() - begun < 10
    assert grown(before) == {}


def test_a_length_shorter_than_the_body_cuts_it(port: int, poker: Caller) -> None:
    before = count_rows()
    status, body = exchange(port, head(poker, "Content-Length: 10") + BODY)
    assert (status, code(body)) == (400, "INVALID_INPUT")
    assert grown(before) == {}


def test_a_client_that_hangs_up_within_its_body_writes_nothing(port: int, poker: Caller) -> None:
    before = count_rows()
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as wire:
        wire.sendall(head(poker, "Content-Length: 1000") + BODY)
        wire.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: wire.recv(65_536), b""))
    assert not answer.startswith(b"HTTP/1.1 200")
    assert grown(before) == {}


def test_stalled_bodies_of_strangers_hold_no_thread(port: int, poker: Caller) -> None:
    stranger = Caller("bct_" + "A" * 43, poker.client)
    with ExitStack() as wires:
        for _ in range(4):
            wire = wires.enter_context(closing(socket.create_connection(("127.0.0.1", port), timeout=20)))
            wire.sendall(head(stranger, "Content-Length: 36") + b"{")
        status, _ = exchange(port, head(poker, f"Content-Length: {len(BODY)}") + BODY)
    assert status == 200


def test_two_lengths_or_a_length_and_chunks_are_refused(port: int, poker: Caller) -> None:
    before = count_rows()
    for lines in (("Content-Length: 36", "Content-Length: 5"), ("Content-Length: 36", "Transfer-Encoding: chunked")):
        status, _ = exchange(port, head(poker, *lines) + BODY)
        assert 400 <= status < 500
    assert grown(before) == {}


def test_a_header_cannot_be_injected_through_the_request_id(port: int, poker: Caller) -> None:
    lines = (f"Content-Length: {len(BODY)}", "X-Request-Id: a%0d%0aX-Evil: 1")
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as wire:
        wire.sendall(head(poker, *lines) + BODY)
        answer = b"".join(iter(lambda: wire.recv(65_536), b""))
    assert b"evil" not in answer.lower()


PEEK = "/api/compute/plugins/acme/widgets/count?tenantId=t1"


def asked(caller: Caller, *lines: str, path: str = PEEK) -> bytes:
    given = "".join(f"{line}\r\n" for line in (f"Authorization: Bearer {caller.secret}", *lines))
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{given}\r\n".encode()


def test_a_get_with_a_body_is_400_and_with_none_is_answered(port: int, poker: Caller) -> None:
    for lines, body in (
        (("Content-Length: 2",), b"{}"),
        (("Content-Length: 2",), b""),
        (("Transfer-Encoding: chunked",), b"2\r\n{}\r\n0\r\n\r\n"),
    ):
        status, said = exchange(port, asked(poker, *lines) + body)
        assert (status, code(said)) == (400, "INVALID_INPUT")
    for lines in ((), ("Content-Length: 0",)):
        assert exchange(port, asked(poker, *lines))[0] == 200


@pytest.mark.parametrize(
    ("lines", "status", "detail"),
    [
        (("Idempotency-Key: k1", "Idempotency-Key: k1"), 400, "The Idempotency-Key 'k1,k1' holds a comma"),
        (("Idempotency-Key: k1", "idempotency-key: k2"), 400, "The Idempotency-Key 'k1,k2' holds a comma"),
        (("Idempotency-Key: k\u00e9",), 400, "The Idempotency-Key is empty, or holds characters other than"),
        (("Authorization: Bearer x",), 401, "The Authorization header was given more than once."),
        (("Content-Encoding: identity", "Content-Encoding: gzip"), 415, "The body's Content-Encoding is"),
        (("Host: elsewhere",), 400, ""),
    ],
)
def test_what_is_told_once_is_not_told_twice(
    port: int, poker: Caller, lines: tuple[str, ...], status: int, detail: str
) -> None:
    before = count_rows()
    answered, said = exchange(port, head(poker, f"Content-Length: {len(BODY)}", *lines) + BODY)
    assert answered == status
    assert not detail or json.loads(said)["detail"].startswith(detail)
    assert grown(before) == {}


def test_a_request_id_that_is_given_twice_is_nobodys(port: int, poker: Caller) -> None:
    status, said = exchange(port, asked(poker, "X-Request-Id: a", "X-Request-Id: b", path=PEEK[:-2] + "!"))
    assert status == 400
    assert "," not in json.loads(said)["instance"]


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-16", "application/j\u00e9son", ""])
def test_a_body_that_is_not_said_to_be_json_in_utf_8_is_415(port: int, poker: Caller, media_type: str) -> None:
    before = count_rows()
    sent = head(poker, f"Content-Length: {len(BODY)}").decode().replace("application/json", media_type).encode()
    status, said = exchange(port, sent + BODY)
    assert (status, code(said)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert "visible ASCII" in json.loads(said)["detail"] or "utf-16" in json.loads(said)["detail"]
    assert grown(before) == {}


def test_a_token_with_characters_beyond_ascii_is_told_as_that(port: int, poker: Caller) -> None:
    stranger = Caller("bct_\u00e9", poker.client)
    status, said = exchange(port, asked(stranger))
    assert (status, json.loads(said)["detail"][:37]) == (401, "The Authorization header is empty, or")


def test_the_permissions_of_the_server_are_those_of_the_database(port: int, make_caller: MakeCaller) -> None:
    nobody = make_caller("t1", name="nobody")
    status, body = exchange(port, head(nobody, f"Content-Length: {len(BODY)}") + BODY)
    assert (status, code(body)) == (403, "ACCESS_DENIED")
