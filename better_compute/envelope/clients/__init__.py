"""Typed clients, written from the OpenAPI document: so they cover what is hosted here, plugins included."""

from better_compute.envelope.clients.python import write as python
from better_compute.envelope.clients.typescript import write as typescript

__all__ = ["python", "typescript"]
