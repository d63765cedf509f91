"""Hears wake-ups through LISTEN, and makes sure that it hears.

After every (re)connect it listens first and then has everything looked at, so nothing falls between. When it
has heard nothing for a while it notifies itself: silence on a dead connection looks like silence on an idle one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any, Final
from uuid import uuid4

import psycopg

from better_compute.store import wakeups
from better_compute.store.failures import describe_failure, trace_failure
from better_compute.store.members import MEMBERS_CHANNEL
from better_compute.store.session import connect, cut
from better_compute.store.wakeups import WORK_CHANNEL, Pair

log: Final = logging.getLogger(__name__)

QUIET_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 5.0
RETRY_SECONDS: Final = (0.2, 5.0)


class Listener:
    """Runs until :meth:`stop`, on a connection of its own that must not go through a transaction pooler."""

    def __init__(
        self, alias: str, on_work: Callable[[list[Pair] | None], None], on_members: Callable[[], None]
    ) -> None:
        self._alias = alias
        self._on_work = on_work
        self._on_members = on_members
        self._stopping = Event()
        self._connection: psycopg.Connection[Any] | None = None
        self._self_check = f"compute_self_{uuid4().hex}"
        #: Whether the last look found the connection alive.
        self.up = False

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stopping.set()
        if self._connection is not None:
            cut(self._connection)

    def run(self) -> None:
        """Listen, and reconnect with backoff, until stopped."""
        retry = RETRY_SECONDS[0]
        while not self._stopping.is_set():
            try:
                with connect(self._alias, "compute-listen", {}, ANSWER_SECONDS) as self._connection:
                    self._listen(self._connection)
            except (psycopg.Error, OSError) as error:
                if not self._stopping.is_set():
                    log.warning("not listening, polling goes on: %s", describe_failure(error))
            except Exception as error:
                log.error("not listening, polling goes on\n%s", trace_failure(error))
            if self.up:
                # It listened, so the database answers: whatever ended it, the next try may come soon.
                retry = RETRY_SECONDS[0]
            self.up = False
            self._connection = None
            self._stopping.wait(retry)
            retry = min(retry * 2, RETRY_SECONDS[1])

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        wakeups.listen(connection, [WORK_CHANNEL, MEMBERS_CHANNEL, self._self_check])
        self.up = True
        self._on_members()
        self._on_work(None)
        heard, asked = monotonic(), None
        while not self._stopping.is_set():
            for channel, payload in wakeups.received(connection, timeout=1.0):
                heard, asked = monotonic(), None
                if channel == WORK_CHANNEL:
                    self._on_work(wakeups.decode(payload))
                elif channel == MEMBERS_CHANNEL:
                    self._on_members()
            now = monotonic()
            if asked is not None and now - asked > ANSWER_SECONDS:
                raise psycopg.OperationalError("no notification arrives; is a transaction pooler in between?")
            if asked is None and now - heard > QUIET_SECONDS:
                wakeups.notify(connection, self._self_check)
                asked = now
