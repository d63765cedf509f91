"""Another session's lock, held while something runs that is not to wait for its end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

from django.db import connection, connections, transaction


@contextmanager
def locked(statement: str) -> Iterator[None]:
    """Have another session lock something, for 30 s at most; what is inside must not have waited for its end."""
    held, release = Event(), Event()

    def hold() -> bool:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(statement)
                held.set()
                return release.wait(30)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        try:
            assert held.wait(10)
            yield
        finally:
            release.set()
        assert holding.result(), "it ended only when the lock was gone"
