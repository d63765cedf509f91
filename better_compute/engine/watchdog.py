"""Looks after the other threads: ends runs that are no longer trusted, and reports hung ones."""

from __future__ import annotations

import gc
import logging
import sys
import traceback
from collections.abc import Sequence
from threading import Event
from time import monotonic
from types import FrameType
from typing import Final

from better_compute import conf
from better_compute.engine.membership import Membership
from better_compute.engine.metrics import metrics
from better_compute.engine.turns import Turns

log: Final = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.25


class Watchdog:
    """Runs until :meth:`stop`. Needs no database itself."""

    def __init__(self, memberships: Sequence[Membership], turns: Turns, settings: conf.Worker) -> None:
        self._memberships = memberships
        self._turns = turns
        self._settings = settings
        self._stopping = Event()

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stopping.set()

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopping.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """One look."""
        for membership in self._memberships:
            if not membership.trusted:
                membership.distrust()
        self._report_hung()

    def _report_hung(self) -> None:
        for thread, running in tuple(self._turns.running.items()):
            seconds = monotonic() - running.since
            if running.reported or seconds * 1_000 < self._settings.hung_ms:
                continue
            running.reported = True
            metrics.add("hung_runs", running.kind)
            frame = stacks().get(thread)
            stack = "".join(traceback.format_stack(frame)) if frame is not None else "its thread is gone"
            log.error("%s has run %s for %.0f s:\n%s", running.kind, ", ".join(running.keys[:5]), seconds, stack)


def stacks() -> dict[int, FrameType]:
    """The frame every thread stands in, by thread ident, taken without the garbage collector.

    Up to Python 3.11 a collection that begins inside stops the process for good: it may wait for the interpreter's
    lock over all threads, which the call holds (CPython issue 106883).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()
