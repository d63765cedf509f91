"""The worker runtime of one process: its members, its threads, and how they start and stop.

Works with the broker down and in any process that lives long enough; the Celery bootstep hosts it in a worker.
It holds ``threads + 6`` PostgreSQL connections: one a handler thread and one of the thread that is spare, one each
for the queue, for membership, for LISTEN; and two for the while of a resync.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Event, Thread
from time import monotonic, sleep
from typing import Final

from django.db import connections

from better_compute import conf, registry
from better_compute.contract.reconcilers import Role
from better_compute.engine.dispatch import Dispatcher, Lane
from better_compute.engine.keeper import Keeper
from better_compute.engine.listener import Listener
from better_compute.engine.membership import Membership
from better_compute.engine.metrics import metrics
from better_compute.engine.resync import next_in_ms, resync
from better_compute.engine.turns import Turns
from better_compute.engine.watchdog import Watchdog
from better_compute.store import transaction
from better_compute.store.failures import trace_failure
from better_compute.store.session import PLANNING, Session, guard_thread
from better_compute.store.wakeups import Pair

log: Final = logging.getLogger(__name__)

#: Longest that a statement of a resync may take.
RESYNC_STATEMENT_SECONDS: Final = 20
#: The runtimes of this process that have started and not stopped: none, or one outside of tests.
running: Final[list[Runtime]] = []
ROLES: Final[tuple[Role, ...]] = ("controllers", "scheduler")


def connections_held() -> int:
    """PostgreSQL connections that the runtime of one process may hold."""
    return conf.current().worker.threads + 6


class Runtime:
    """Runs the hosted reconcilers of ``roles`` until :meth:`stop`.

    Parameters
    ----------
    on_join
        Told a member's id whenever the process registers one.
    on_bury
        Told the ids of members that the process buried.
    """

    def __init__(
        self,
        roles: Collection[Role] = ROLES,
        *,
        on_join: Callable[[str], None] = lambda id: None,
        on_bury: Callable[[Sequence[str]], object] = lambda dead: None,
    ) -> None:
        self.settings = conf.current().worker
        alias = conf.current().database
        hosted = registry.current()
        self.memberships = [
            membership
            for role in ROLES
            if role in roles
            for membership in [
                Membership(
                    role,
                    {name: each for name, each in hosted.reconcilers.items() if each.role == role},
                    connections_held(),
                )
            ]
            if membership.reconcilers
        ]
        self.dispatcher = Dispatcher(
            [
                Lane(hosted.reconciler_owner[name], reconciler, membership)
                for membership in self.memberships
                for name, reconciler in membership.reconcilers.items()
            ],
            self.settings,
        )
        deadline = {"statement_timeout": f"{max(1_000, self.settings.ttl_ms // 3)}ms"}
        patience = max(1.5, self.settings.ttl_ms / 2_000)
        # A finish lost with a crashed server only means that a key runs once more.
        self._queue = Session(alias, "compute-queue", {**PLANNING, **deadline, "synchronous_commit": "off"}, patience)
        self._members = Session(alias, "compute-members", {**PLANNING, **deadline}, patience)
        self.turns = Turns(self.dispatcher, self._queue, self.settings)
        self.keeper = Keeper(self.memberships, self.dispatcher, self._members, self.settings, on_join, on_bury)
        self.listener = Listener(alias, self.wake, self.keeper.poke)
        self._watchdog = Watchdog(self.memberships, self.turns, self.settings)
        self._alias = alias
        self._workers: list[Thread] = []
        self._loops: list[Thread] = []
        self._stopped = Event()
        self._forget: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start the threads; joining and taking leases happens on them."""
        if not self.memberships:
            log.info("no reconciler of this process's roles is hosted; nothing to run")
            return
        self._stopped.clear()
        self._forget = transaction.wake_with(self.dispatcher.note)
        for name, target in (
            ("compute-keeper", self.keeper.run),
            ("compute-listener", self.listener.run),
            ("compute-watchdog", self._watchdog.run),
            ("compute-resync", self._resync),
        ):
            if self.settings.pooled and name == "compute-listener":
                # A pooler would hand what is heard to nobody, or to somebody else.
                continue
            self._loops.append(Thread(target=target, name=name, daemon=True))
        for number in range(self.dispatcher.threads):
            self._workers.append(Thread(target=self._work, name=f"compute-worker-{number}", daemon=True))
        for thread in (*self._loops, *self._workers):
            thread.start()
        running.append(self)

    def wake(self, pairs: Iterable[Pair] | None) -> None:
        """Have (kind, shard) pairs looked at now, or with None all of them."""
        self.dispatcher.wake(pairs)

    def wait_idle(self, seconds: float) -> bool:
        """Wait until no turn is under way and nothing is known to be due; False after ``seconds``."""
        until = monotonic() + seconds
        with self.dispatcher.rested:
            while not self.dispatcher.idle() and not self.dispatcher.closed:
                if not self.dispatcher.rested.wait(until - monotonic()):
                    return False
        return True

    def stop(self) -> None:
        """Start no more keys, ask the running ones to end, wait up to the grace, give back every lease."""
        if not self._loops:
            return
        running.remove(self)
        self._forget()
        self._stopped.set()
        self.dispatcher.close()
        self.keeper.retire()
        for membership in self.memberships:
            for hold in tuple(membership.holds.values()):
                hold.abort.set()
        until = monotonic() + self.settings.grace_ms / 1_000
        for thread in self._workers:
            thread.join(max(0.0, until - monotonic()))
        stuck = [thread.name for thread in self._workers if thread.is_alive()]
        if stuck:
            log.warning("%s did not end within the grace; their keys run again elsewhere", ", ".join(stuck))
        self.listener.stop()
        self._watchdog.stop()
        self.keeper.stop()
        for thread in self._loops:
            thread.join(5)
        self._queue.close()
        self._loops.clear()
        self._workers.clear()

    def _resync(self) -> None:
        """Resync every member now and then, on connections that are closed in between."""
        session = Session(
            self._alias,
            "compute-resync",
            {"synchronous_commit": "off", "statement_timeout": f"{RESYNC_STATEMENT_SECONDS}s"},
        )
        while not self._stopped.wait(next_in_ms(self.settings.resync_ms) / 1_000):
            for membership in self.memberships:
                try:
                    with session.cursor() as cursor:
                        missed = resync(cursor, membership, spread_ms=self.settings.resync_ms)
                    if missed:
                        metrics.add("resynced", amount=missed)
                except Exception as error:
                    log.error("resync failed; the next one tries again\n%s", trace_failure(error))
                finally:
                    session.close()
                    connections.close_all()

    def _work(self) -> None:
        half_ttl = f"{self.settings.idle_ms}ms"
        guard_thread(
            self._alias,
            {
                "idle_in_transaction_session_timeout": half_ttl,
                "lock_timeout": half_ttl,
                "statement_timeout": f"{self.settings.hung_ms}ms",
            },
            patience=(self.settings.hung_ms + self.settings.ttl_ms / 2) / 1_000,
        )
        try:
            while True:
                try:
                    if not self.turns.run_next():
                        return
                except BaseException as error:
                    # Nothing may end this thread but the process's own end: its lane would stand still for good.
                    log.error("a turn failed; its keys stay queued\n%s", trace_failure(error))
                    sleep(0.5)
        finally:
            connections.close_all()
