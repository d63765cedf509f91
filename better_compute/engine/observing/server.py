"""A worker's own small HTTP server: it serves no API, and still has to be asked how it is."""

from __future__ import annotations

import logging
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import connections
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import resolve

from better_compute import conf

log: Final = logging.getLogger(__name__)

URLS: Final = "better_compute.engine.observing.urls"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    #: Nobody may hold a thread for ever.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a probe asks every few seconds."""


class _Application(WSGIHandler):
    """The three views and nothing of the host's: no middleware, no other URL."""

    def load_middleware(self, is_async: bool = False) -> None:
        """None."""

    def get_response(self, request: Any) -> HttpResponseBase:
        """One of the three, or 404."""
        assert isinstance(request, WSGIRequest)  # noqa: S101 - what WSGIHandler makes
        try:
            match = resolve(request.path_info, urlconf=URLS)
        except Http404:
            return HttpResponse("not found\n", content_type="text/plain", status=404)
        try:
            response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        finally:
            # A thread lives for one request; its connection must not outlive it.
            connections.close_all()
        return response


def serve() -> Any:
    """Serve on ``COMPUTE["OBSERVE"]``'s host and port, on a thread; returns what stops it, or None without a port."""
    settings = conf.current().observe
    if not settings.port:
        return None
    server = _Server((settings.host, settings.port), _Quiet)
    server.set_app(_Application())
    Thread(target=server.serve_forever, name="compute-observe", daemon=True).start()
    log.info("livez, readyz and metrics on http://%s:%d", settings.host, settings.port)

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return stop
