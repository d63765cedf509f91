"""A proxy between a client and a running server, which loses, cuts and refuses what it is told to."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

#: ``lost``: the server has answered, and the client hears nothing. ``cut``: it hears half of it. ``unsent``: the
#: server never hears of the call. ``gateway``: the server has answered, and the client is told 502.
Fault = Literal["lost", "cut", "unsent", "gateway"]


class FaultyProxy:
    """Passes calls on to the server, and does to each what ``fault`` says of its path, key and the attempt's number."""

    def __init__(self, url: str, fault: Callable[[str, int], Fault | None]) -> None:
        target = urlsplit(url)
        self.reached: list[str] = []
        attempts: dict[tuple[str, str], int] = {}
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                call = (self.path, self.headers.get("Idempotency-Key", ""))
                attempts[call] = attempts.get(call, 0) + 1
                done = fault(self.path, attempts[call])
                if done == "unsent":
                    self.close_connection = True
                    return
                answer, text = self._pass_on(body)
                proxy.reached.append(self.path)
                if done == "lost":
                    self.close_connection = True
                    return
                self.send_response(502 if done == "gateway" else answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(text[: len(text) // 2] if done == "cut" else text)
                self.close_connection = done == "cut"

            def _pass_on(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
                onward = http.client.HTTPConnection(str(target.hostname), target.port, timeout=120)
                kept = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
                try:
                    onward.request("POST", self.path, body, kept)
                    answer = onward.getresponse()
                    return answer, answer.read()
                finally:
                    onward.close()

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Stop serving."""
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def faulty(url: str, fault: Callable[[str, int], Fault | None]) -> Iterator[FaultyProxy]:
    """A proxy for the duration."""
    made = FaultyProxy(url, fault)
    try:
        yield made
    finally:
        made.stop()
