"""The stream process: an ASGI application of its own beside the WSGI one that answers calls.

A stream waits for minutes and a call for milliseconds, so they do not share a process. This one holds no PostgreSQL
connection while it waits: whatever asks the database does so on a thread, one at a time, and closes its connection.
``manage.py compute_serve --roles stream`` runs it under uvicorn (``management/asgi.py``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from io import BytesIO
from threading import Thread
from typing import Any, Final, TypeVar

from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, HttpResponse

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.engine import hosting
from better_compute.engine.observing import views
from better_compute.envelope import http
from better_compute.store.failures import trace_failure

log: Final = logging.getLogger(__name__)

#: Of the thread that asks the database; what the process states beside it is hosting's own.
CONNECTIONS: Final = 1
#: How long a probe waits for the database, and for another probe before it.
PATIENCE_SECONDS: Final = 5.0
#: How long stopping the modules may take: a supervisor's patience ends too.
STOP_SECONDS: Final = 10.0

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_T = TypeVar("_T")


class Stream:
    """Answers ``/livez``, ``/readyz`` and ``/metrics``; a problem for every other route."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(1)
        self._asking: dict[str, Callable[[HttpRequest], HttpResponse]] = {
            "/readyz": views.readyz,
            "/metrics": views.metrics,
        }

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """The ASGI entry point (ASGI 3.0: ``lifespan`` and ``http``)."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            # No body is read: what is served here is asked for with GET.
            await _respond(await self._answer(ASGIRequest(scope, BytesIO())), send)
        else:
            raise ValueError(f"The stream process speaks no {scope['type']}; its clients use HTTP.")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await _on_a_thread(lambda: hosting.initialize("stream", connections_held=CONNECTIONS))
                except Exception as error:
                    if not isinstance(error, ComputeError):
                        log.critical("the stream process cannot start\n%s", trace_failure(error))
                    await send({"type": "lifespan.startup.failed", "message": f"cannot start: {error}"})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                try:
                    await asyncio.wait_for(_on_a_thread(hosting.stop), STOP_SECONDS)
                except Exception as error:
                    log.error("stopping failed: %s", error or type(error).__name__)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/livez":
            return views.livez(request)
        view = self._asking.get(request.path)
        if view is None:
            unknown = ComputeError(
                ErrorCode.NOT_FOUND,
                f"Nothing is served at {request.path[:200]!r} here.",
                mend="Calls go to the API; this process serves streams.",
            )
            return http.refuse(request, unknown)
        try:
            return await asyncio.wait_for(self._ask(partial(view, request)), PATIENCE_SECONDS)
        except TimeoutError:
            busy = ComputeError(
                ErrorCode.STORAGE_BUSY, "The database does not answer.", mend="Ask again.", retry_after=1
            )
            return http.refuse(request, busy)
        except Exception as error:
            return http.refuse(request, error)

    async def _ask(self, view: Callable[[], HttpResponse]) -> HttpResponse:
        await self._free.acquire()
        asked = asyncio.ensure_future(_on_a_thread(view))
        # Who gives up leaves the thread behind with its connection, so the next one waits for it still.
        asked.add_done_callback(self._answered)
        return await asyncio.shield(asked)

    def _answered(self, asked: asyncio.Future[HttpResponse]) -> None:
        self._free.release()
        if not asked.cancelled() and asked.exception() is not None:
            log.debug("a question failed: %s", asked.exception())


async def _on_a_thread(function: Callable[[], _T]) -> _T:
    """Run ``function`` off the loop, on a thread that keeps nobody from leaving, and close its connections."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_T] = loop.create_future()

    def settle(error: BaseException | None, value: Any) -> None:
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)

    def work() -> None:
        error, value = None, None
        try:
            value = function()
        except BaseException as raised:
            error = raised
        finally:
            connections.close_all()
        try:
            loop.call_soon_threadsafe(settle, error, value)
        except RuntimeError:
            log.debug("the loop ended before its question was answered")

    Thread(target=work, name="compute-stream", daemon=True).start()
    return await answer


async def _respond(response: HttpResponse, send: Send) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    body = response.content
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
