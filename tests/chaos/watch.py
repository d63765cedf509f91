"""Looks all the while for a wake-up that is lost at this moment, which a later enqueue of its key would hide."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

LOOK_SECONDS = 0.1

# An enqueue and what it wants commit together, and a run and what it saw before the key is finished. So in every
# snapshot a key that wants more than its runs have seen is queued, or its wake-up is lost.
LOST_NOW = """
SELECT wanted.kind, wanted.key, wanted.want, coalesce(seen.saw, 0)
FROM arena_wants wanted
LEFT JOIN LATERAL (
  SELECT max(ran.saw) AS saw FROM arena_runs ran WHERE ran.kind = wanted.kind AND ran.key = wanted.key
) AS seen ON true
WHERE wanted.want > coalesce(seen.saw, 0)
  AND NOT EXISTS (SELECT FROM compute_work queued WHERE queued.kind = wanted.kind AND queued.key = wanted.key)
"""


@dataclass
class Watch:
    """A thread with a connection of its own, reopened when the database was restarted."""

    connect: Callable[[], psycopg.Connection[Any]]
    #: Every (kind, key, want, saw) that was lost when it was looked at.
    found: set[tuple[str, str, int, int]] = field(default_factory=set)
    looks: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for that."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                with self.connect() as connection:
                    while not self._stopping.wait(LOOK_SECONDS):
                        self.found.update(connection.execute(LOST_NOW).fetchall())
                        self.looks += 1
            except psycopg.OperationalError:
                # The database is being restarted, or this connection was cut like any other.
                continue
