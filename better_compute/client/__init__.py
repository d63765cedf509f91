"""Calls the API over HTTP, from Python: what every generated client stands on. It needs httpx, and no Django.

``manage.py compute_client python`` writes a typed client of what an installation hosts; :class:`Transport` and
:class:`AsyncTransport` call any method by its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from better_compute.client.errors import ApiError, BadAnswer, ConnectionLost, error_types
from better_compute.client.options import Options
from better_compute.client.watch import AsyncWatch, Watch
from better_compute.client.watching import Change, Watching

if TYPE_CHECKING:
    from better_compute.client.transport import AsyncTransport as AsyncTransport, Transport as Transport

__all__ = [
    "ApiError",
    "AsyncTransport",
    "AsyncWatch",
    "BadAnswer",
    "Change",
    "ConnectionLost",
    "Options",
    "Transport",
    "Watch",
    "Watching",
    "error_types",
]


def __getattr__(name: str) -> Any:
    # httpx is an extra, and what prints tables does without.
    if name in ("AsyncTransport", "Transport"):
        return getattr(import_module("better_compute.client.transport"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
