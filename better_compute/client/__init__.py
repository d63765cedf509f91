"""Calls the API over HTTP, from Python: what every generated client stands on. It needs httpx, and no Django.

``manage.py compute_client python`` writes a typed client of what an installation hosts; :class:`Transport` and
:class:`AsyncTransport` call any method by its name.
"""

from better_compute.client.errors import ApiError, ConnectionLost, error_types
from better_compute.client.options import Options
from better_compute.client.transport import AsyncTransport, Transport

__all__ = ["ApiError", "AsyncTransport", "ConnectionLost", "Options", "Transport", "error_types"]
