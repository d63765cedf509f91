"""The request id on every log line that is written while a call runs, or about its request, whoever writes it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

#: Stands where no call runs.
NONE: Final = "-"

#: Where a request has its id.
REQUEST_ATTRIBUTE: Final = "_compute_request_id"

_current: Final[ContextVar[str]] = ContextVar("better_compute_request_id", default=NONE)


@contextmanager
def during(request_id: str) -> Iterator[None]:
    """Say which call this thread serves."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)


class RequestIdFilter(logging.Filter):
    """Gives every record a ``request_id``, ``-`` outside of calls; put it on a handler and into its format.

    ::

        "filters": {"request": {"()": "better_compute.RequestIdFilter"}},
        "formatters": {"line": {"format": "%(levelname)s %(name)s [%(request_id)s] %(message)s"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "filters": ["request"], "formatter": "line"}},
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let everything pass."""
        current = _current.get()
        if current == NONE:
            # Django tells of a refusal when the call is over, and gives the request along.
            current = getattr(getattr(record, "request", None), REQUEST_ATTRIBUTE, NONE)
        record.request_id = current
        return True
