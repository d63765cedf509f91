"""A server that answers by a script: refusals, rubbish, drops and drips, over a real socket."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Status, headers, body. A status of 0 hangs up; a callable body writes to the socket itself.
Scripted = tuple[int, dict[str, str], Any]

OK: Scripted = (200, {}, {"done": True})


def problem(code: str, status: int, **members: Any) -> Scripted:
    """A refusal."""
    headers = {"Content-Type": "application/problem+json"}
    return status, headers, {"code": code, "status": status, "detail": "d", **members}


class Server:
    """Answers by a script, and keeps the headers and the body of each request."""

    def __init__(self) -> None:
        self.script: list[Scripted] = []
        self.seen: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        #: Seconds before each answer, as on a machine that has something else to do.
        self.stall_s = 0.0
        #: Is set when the test is over, so that a drip ends.
        self.over = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                server.seen.append(dict(self.headers))
                status, headers, body = server.script.pop(0)
                server.over.wait(server.stall_s)
                if status == 0:
                    self.close_connection = True
                    return
                if callable(body):
                    self.close_connection = True
                    with suppress(OSError):
                        body(self.connection, server.over)
                    return
                self.send_response(status)
                text = body if isinstance(body, bytes) else json.dumps(body).encode()
                stated = {"Content-Length": str(len(text)), "Content-Type": "application/json", **headers}
                for name, value in stated.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(text)
                if int(stated["Content-Length"]) > len(text):
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Stop serving."""
        self.over.set()
        self._http.shutdown()
        self._http.socket.close()


def drip(parts: Iterable[bytes], every_s: float) -> Callable[[socket.socket, threading.Event], None]:
    """A body that comes part by part, slower than anybody likes to wait."""

    def write(connection: socket.socket, over: threading.Event) -> None:
        for part in parts:
            connection.sendall(part)
            if over.wait(every_s):
                return

    return write


def endless(head: bytes, part: bytes) -> Iterator[bytes]:
    """A head, and then the same for ever."""
    yield head
    while True:
        yield part
