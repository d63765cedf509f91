"""Wakes workers after a commit, off the committing thread.

A commit only notes (kind, shard) in a set. One thread a process, started with the first note, sends it at once
when it has sent nothing for :data:`GATHER_SECONDS`, and otherwise gathers for so long: a single commit waits for
nothing, a thousand cost a handful of messages, and a dead database or broker delays nobody. A lost hint costs
a poll interval, never a key.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from threading import Condition, Thread
from time import monotonic
from typing import Final

from better_compute import conf
from better_compute.engine.metrics import metrics
from better_compute.store import transaction
from better_compute.store.session import Session
from better_compute.store.wakeups import WORK_CHANNEL, Pair, encode, notify

log: Final = logging.getLogger(__name__)

GATHER_SECONDS: Final = 0.02
#: After a message could not be sent, nothing is tried for this long, doubling up to the second figure.
REST_SECONDS: Final = (1.0, 30.0)
#: A sender with nothing to say for this long lets go of what it holds.
IDLE_SECONDS: Final = 5.0


_all: Final[list[Coalescer]] = []


class Coalescer:
    """Gathers pairs and hands them to ``send`` on a thread of its own.

    Parameters
    ----------
    send
        Sends one message for all pairs; may block and may raise.
    let_go
        Called when there was nothing to say for a while, and by :meth:`rest`.
    """

    def __init__(self, name: str, send: Callable[[set[Pair]], None], let_go: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self._send = send
        self._let_go = let_go
        self._thread: Thread | None = None
        self._pairs: set[Pair] = set()
        self._changed = Condition()
        self.sent = 0
        self.failed = 0
        _all.append(self)
        os.register_at_fork(after_in_child=self._forked)

    def note(self, kind: str, shard: int) -> None:
        """Remember that ``kind`` has work on ``shard``; returns at once."""
        with self._changed:
            self._pairs.add((kind, shard))
            if self._thread is None:
                self._thread = Thread(target=self._run, name=self.name, daemon=True)
                self._thread.start()
            if len(self._pairs) == 1:
                self._changed.notify_all()

    def rest(self) -> None:
        """Forget what is noted, let go, and end the thread; the next note starts another."""
        with self._changed:
            self._pairs.clear()
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None:
            thread.join(timeout=10)

    def _forked(self) -> None:
        self._changed = Condition()
        self._pairs = set()
        self._thread = None

    def _run(self) -> None:
        me = self._thread
        resting_until, rest, next_send = 0.0, REST_SECONDS[0], 0.0
        while True:
            with self._changed:
                while not self._pairs and self._thread is me:
                    if not self._changed.wait(IDLE_SECONDS):
                        self._let_go()
                if self._thread is not me:
                    self._let_go()
                    return
                # Let a burst come together; waiting on the condition lets rest() end it early.
                self._changed.wait_for(lambda: self._thread is not me, max(0.0, next_send - monotonic()))
                pairs, self._pairs = self._pairs, set()
            next_send = monotonic() + GATHER_SECONDS
            if not pairs or monotonic() < resting_until:
                continue
            try:
                self._send(pairs)
            except Exception as error:
                self.failed += 1
                resting_until = monotonic() + rest
                log.warning("%s: hints rest for %.0f s, polling goes on: %s", self.name, rest, error)
                rest = min(rest * 2, REST_SECONDS[1])
            else:
                self.sent += 1
                rest = REST_SECONDS[0]


def senders() -> tuple[Coalescer, ...]:
    """Every sender of this process."""
    return tuple(_all)


def rest() -> None:
    """Have every sender of this process forget what it gathered and let go of its connections."""
    for coalescer in _all:
        coalescer.rest()


def connections_held() -> int:
    """PostgreSQL connections that the senders of this process may hold: one each."""
    return len(_all)


_sessions: dict[str, Session] = {}


def _session() -> Session:
    alias = conf.current().database
    if alias not in _sessions:
        _sessions[alias] = Session(alias, "compute-wakeup", {"statement_timeout": "2s"}, patience=4)
    return _sessions[alias]


def _notify(pairs: set[Pair]) -> None:
    with _session().cursor() as cursor:
        notify(cursor, WORK_CHANNEL, encode(pairs))


def _close() -> None:
    for session in _sessions.values():
        session.close()


#: Tells every worker through PostgreSQL.
notifier: Final = Coalescer("compute-notify", _notify, _close)
os.register_at_fork(after_in_child=_sessions.clear)
transaction.wake_with(notifier.note)
transaction.wake_with(lambda kind, shard: metrics.add("adds", kind))
