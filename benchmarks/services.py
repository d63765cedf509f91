"""The servers a run uses: those of the environment, or the embedded ones of development."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.database import server_version
from better_compute.devtools.services import Services as EmbeddedServices


@dataclass(frozen=True, slots=True)
class Servers:
    """Addresses that children are given, and which PostgreSQL answers, for the record."""

    database_url: str
    broker_url: str

    @property
    def postgresql(self) -> str:
        """Version and commit settings of the server."""
        return server_version(self.database_url)


@contextmanager
def services() -> Iterator[Servers]:
    """Yield ``DATABASE_URL`` and ``CELERY_BROKER_URL``; start the embedded server of one that is not set."""
    embedded = EmbeddedServices(name="bench")
    embedded.start()
    try:
        yield Servers(os.environ["DATABASE_URL"], os.environ["CELERY_BROKER_URL"])
    finally:
        embedded.stop()
