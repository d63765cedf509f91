"""Keeps a process's memberships: beats, buries the dead, shares the leases, seeds, and says so to the others.

A thread of its own with a connection of its own, so that neither a handler that hogs the interpreter for a
while nor a broker that is down keeps it from beating. Losing that connection voids the members' trust at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic
from typing import Any, Final

import psycopg

from better_compute import conf
from better_compute.engine.dispatch import Dispatcher
from better_compute.engine.membership import Membership
from better_compute.engine.metrics import metrics
from better_compute.engine.periodic import seed
from better_compute.store.failures import describe_failure, trace_failure
from better_compute.store.members import MEMBERS_CHANNEL
from better_compute.store.session import Session
from better_compute.store.wakeups import notify

log: Final = logging.getLogger(__name__)


class Keeper:
    """Runs until :meth:`stop`; then gives back every lease and leaves.

    Parameters
    ----------
    on_join
        Told a member's id whenever it registers under a new one.
    on_bury
        Told the ids of members that were buried; must return at once.
    """

    def __init__(
        self,
        memberships: Sequence[Membership],
        dispatcher: Dispatcher,
        session: Session,
        settings: conf.Worker,
        on_join: Callable[[str], None],
        on_bury: Callable[[Sequence[str]], object] = lambda dead: None,
    ) -> None:
        self._memberships = memberships
        self._dispatcher = dispatcher
        self._session = session
        self._settings = settings
        self._on_join = on_join
        self._on_bury = on_bury
        self._poked = Event()
        self._stopping = Event()
        self._retiring = Event()
        self._next_beat = 0.0
        #: By role, the members that lived when its periodic keys were written last.
        self._seeded: dict[str, frozenset[str]] = {}
        self.ready = Event()

    def poke(self) -> None:
        """Look at members and leases now."""
        self._poked.set()

    def retire(self) -> None:
        """Take no more leases, and give back each as soon as nothing runs under it; keep beating."""
        self._retiring.set()
        self.poke()

    def stop(self) -> None:
        """End :meth:`run`, which leaves."""
        self._stopping.set()
        self.poke()

    def run(self) -> None:
        """Beat and share until stopped."""
        while not self._stopping.is_set():
            self._poked.clear()
            before = self._startable()
            try:
                with self._session.cursor() as cursor:
                    changed = [self.step(cursor, membership) for membership in self._memberships]
                    if any(changed):
                        notify(cursor, MEMBERS_CHANNEL)
                self.ready.set()
                if any(changed) or self._startable() != before:
                    self._dispatcher.wake(None)
            except Exception as error:
                self._session.close()
                for membership in self._memberships:
                    membership.distrust()
                lost = isinstance(error, psycopg.Error)
                log.warning(
                    "leases are not trusted until the next beat: %s",
                    describe_failure(error) if lost else trace_failure(error),
                )
                self._next_beat = 0.0
            # Looking is cheap and finds a dead member early; beating is a write.
            self._poked.wait(self._settings.tick_ms / 4_000)
        self._leave()

    def step(self, cursor: Any, membership: Membership) -> bool:
        """One look at one membership; True when members or leases changed."""
        joined = False
        if not membership.id:
            joined = self._join(cursor, membership)
        elif monotonic() >= self._next_beat or not membership.trusted:
            if not membership.renew(cursor):
                log.warning("member %s was taken for dead; joining anew", membership.id)
                joined = self._join(cursor, membership)
            if membership is self._memberships[-1]:
                self._next_beat = monotonic() + self._settings.tick_ms / 1_000
        if self._retiring.is_set():
            return membership.retire(cursor, self._dispatcher.runs_under) or joined
        buried = membership.bury(cursor, [each.id for each in self._memberships])
        for dead in buried:
            log.warning("buried member %s, which stopped beating", dead)
            metrics.add("members_buried")
            joined = True
        if buried:
            self._on_bury(buried)
        paused = membership.paused
        changed = membership.balance(cursor, self._dispatcher.runs_under)
        if membership.paused != paused:
            log.info("member %s: paused are %s", membership.id, ", ".join(sorted(membership.paused)) or "none")
        self._seed(cursor, membership)
        if changed:
            metrics.add("lease_transitions")
        return joined or changed

    def _startable(self) -> list[tuple[bool, frozenset[str]]]:
        """What lets keys start: a change of it may let those start that no enqueue will announce again."""
        return [(membership.trusted, membership.paused) for membership in self._memberships]

    def _join(self, cursor: Any, membership: Membership) -> bool:
        membership.join(cursor)
        self._on_join(membership.id)
        return True

    def _seed(self, cursor: Any, membership: Membership) -> None:
        """Write the periodic keys whenever members come or go: another release's may have had others."""
        if self._seeded.get(membership.role) == membership.crowd:
            return
        try:
            seed(cursor, membership.reconcilers.values())
        except psycopg.errors.QueryCanceled:
            log.warning("a transaction that stays open holds a periodic key; the next resync writes it")
        self._seeded[membership.role] = membership.crowd

    def _leave(self) -> None:
        try:
            with self._session.cursor() as cursor:
                for membership in self._memberships:
                    if membership.id:
                        membership.leave(cursor)
                notify(cursor, MEMBERS_CHANNEL)
        except psycopg.Error as error:
            log.warning("could not give back leases; they end by themselves: %s", str(error).strip())
        self._session.close()
