"""An API server in a process of its own, and clients that keep it busy over real sockets.

The clients are one thread with a selector and requests that are bytes already, so that on a small machine they
take little from the server, and the same from every contestant.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from better_compute.devtools.ports import LOOPBACK, free_port

#: Calls that the server answers at once, as ``compute_serve`` starts it; and clients that call.
THREADS = 4
CLIENTS = 4
#: Seconds that a server may take to start.
PATIENCE = 60.0
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """A GET of a path with its query string, or a POST with a body."""

    path: str
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A server that answers."""

    port: int
    token: str
    process: psutil.Process

    def request(self, asked: Asked) -> bytes:
        """A whole request."""
        sent = f"Content-Type: application/json\r\nContent-Length: {len(asked.body)}\r\n" if asked.body else ""
        head = (
            f"{'POST' if asked.body else 'GET'} {asked.path} HTTP/1.1\r\nHost: {LOOPBACK}\r\n"
            f"Authorization: Bearer {self.token}\r\n{sent}\r\n"
        )
        return head.encode() + asked.body

    def rate(self, asked: Iterator[Asked], calls: int) -> float:
        """Calls a second that :data:`CLIENTS` clients together get answered."""
        began = time.perf_counter()
        self.call([self.request(next(asked)) for _ in range(calls)])
        return calls / (time.perf_counter() - began)

    def call(self, given: Iterable[bytes], statuses: Container[bytes] = (b"200",)) -> bytes:
        """Have every request answered, each client one after the other; returns the last body."""
        requests = iter(given)
        body = b""
        with selectors.DefaultSelector() as selector:
            for _ in range(CLIENTS):
                client = socket.create_connection((LOOPBACK, self.port))
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if (request := next(requests, None)) is None:
                    client.close()
                    continue
                client.sendall(request)
                selector.register(client, selectors.EVENT_READ, bytearray())
            while selector.get_map():
                for key, _ in selector.select():
                    client, got = key.fileobj, key.data
                    assert isinstance(client, socket.socket)
                    part = client.recv(65_536)
                    assert part, f"the server hung up after {bytes(got[:300])!r}"
                    got += part
                    answer = whole(got)
                    if answer is None:
                        continue
                    head, body = answer
                    assert head[9:12] in statuses, f"{head[:40]!r} {body[:300]!r}"
                    got.clear()
                    if (request := next(requests, None)) is None:
                        selector.unregister(client)
                        client.close()
                    else:
                        client.sendall(request)
        return body

    def rss_bytes(self) -> int:
        """Resident memory of the server's processes."""
        return sum(each.memory_info().rss for each in (self.process, *self.process.children(recursive=True)))


def whole(got: bytearray) -> tuple[bytes, bytes] | None:
    """Head and body of an answer, None while some of it is missing."""
    end = got.find(b"\r\n\r\n")
    if end < 0:
        return None
    head, body = bytes(got[:end]), bytes(got[end + 4 :])
    length = _LENGTH.search(head)
    # Nobody states the length where no middleware does.
    complete = body.endswith(b"0\r\n\r\n") if length is None else len(body) >= int(length[1])
    return (head, body) if complete else None


@contextmanager
def serving(token: str) -> Iterator[ApiServer]:
    """Start granian as ``compute_serve --roles api`` does, wait until it answers, and stop it."""
    port = free_port()
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "benchmarks.settings", "COMPUTE_THREADS": str(THREADS)}
    command = [
        *(sys.executable, "-m", "granian", "--interface", "wsgi", "--workers", "1"),
        *("--blocking-threads", str(THREADS), "--no-ws", "--log-level", "warning"),
        *("--host", LOOPBACK, "--port", str(port), "benchmarks.wsgi:application"),
    ]
    process = subprocess.Popen(command, env=environment)
    try:
        _wait(port, process)
        yield ApiServer(port, token, psutil.Process(process.pid))
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert process.poll() is None, f"granian ended with {process.returncode}"
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"granian does not listen on {port} after {PATIENCE:g} s")
