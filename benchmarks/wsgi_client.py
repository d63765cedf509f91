"""Calls in process through Django's own WSGI handler: what a server runs, less the socket."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Iterator
from typing import Any

from django.core.handlers.wsgi import WSGIHandler


class Caller:
    """Posts JSON bodies with one bearer token."""

    def __init__(self, token: str) -> None:
        self._handler = WSGIHandler()
        self._token = token

    def get(self, path: str, query: str = "") -> bytes:
        """The body of the answer. Raises AssertionError unless it is 200."""
        return self._call({"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query}, b"")

    def post(self, path: str, body: bytes, *, key: str = "") -> bytes:
        """The body of the answer. Raises AssertionError unless it is 200."""
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "QUERY_STRING": "", "CONTENT_TYPE": "application/json"}
        if key:
            environ["HTTP_IDEMPOTENCY_KEY"] = key
        return self._call(environ, body)

    def _call(self, request: dict[str, str], body: bytes) -> bytes:
        environ: dict[str, Any] = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": "testserver",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_AUTHORIZATION": f"Bearer {self._token}",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            **request,
        }
        status: list[str] = []
        response = self._handler(environ, lambda line, headers, exc_info=None: status.append(line))
        answer = b"".join(response)
        response.close()
        assert status == ["200 OK"], f"{request['PATH_INFO']}: {status} {answer[:300]!r}"
        return answer

    def median_us(self, path: str, bodies: Iterator[bytes], calls: int) -> float:
        """Median time of one call in microseconds, over ``calls`` calls."""
        times = []
        for _ in range(calls):
            body = next(bodies)
            began = time.perf_counter_ns()
            self.post(path, body)
            times.append((time.perf_counter_ns() - began) / 1_000)
        return statistics.median(times)
