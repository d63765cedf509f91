"""A worker that moves only when a test says so: joins, beats, takes over, runs keys, freezes and dies on demand.

It does what a worker process does with the engine's own parts, without its timers and threads: what it believes may
be wrong, and only the fence stands between it and the data. Use several to see what your reconciler does when its
lease goes to another member in the middle of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final
from uuid import uuid4

import psycopg
from django.db import connections

from better_compute import conf, registry
from better_compute.contract.reconcilers import Role
from better_compute.engine.jobs import Job
from better_compute.engine.membership import Membership
from better_compute.engine.periodic import seed
from better_compute.store import session
from better_compute.store.session import Session, guard_thread
from better_compute.testing.actor import Actor
from better_compute.testing.faults import Point, watched

#: Decides whether the member stands still at a point; may raise, to fail the run there.
Stops = Callable[[Point, Sequence[str]], bool]


class SimulatedMember:
    """A member of ``role``, running the hosted reconcilers of that role. Close it when done.

    Parameters
    ----------
    clock
        Seconds of the process's own clock, for how long it trusts its leases.
    fresh_id
        Names it at every join.
    stops
        Asked at every fault point; by default it stands still only where :meth:`run_until` says.
    """

    def __init__(
        self,
        role: Role = "controllers",
        *,
        clock: Callable[[], float] = monotonic,
        fresh_id: Callable[[], str] = lambda: str(uuid4()),
        stops: Stops | None = None,
    ) -> None:
        self._alias: Final = conf.current().database
        hosted = {name: each for name, each in registry.current().reconcilers.items() if each.role == role}
        self.membership: Final = Membership(role, hosted, clock=clock, fresh_id=fresh_id)
        self._members = Session(self._alias, "compute-simulated-members", {})
        self._queue = Session(self._alias, "compute-simulated-queue", {})
        self._stops = stops
        self._stop_at: Point | None = None
        self._next_beat = 0.0
        self._handler_pid = 0
        self._guarded = False
        self._actor = Actor("simulated-member", self._let_go)
        #: Keys that runs have ended for so far.
        self.ran = 0
        #: Why its last turn could not be finished, if it could not.
        self.problem: psycopg.Error | None = None

    @property
    def id(self) -> str:
        """Its id; empty before it has joined, and another one after it was taken for dead."""
        return self.membership.id

    @property
    def standing(self) -> str | None:
        """The fault point at which its run stands still; None when it runs nothing."""
        return self._actor.standing

    @property
    def kinds(self) -> list[str]:
        """The reconcilers it runs, by name."""
        return sorted(self.membership.reconcilers)

    def step(self) -> bool:
        """What a worker's keeper does every beat: join or renew, bury the dead, share the leases.

        Works while a run of the member stands still, as the keeper's own thread does. True when members or
        leases changed.
        """
        with self._members.cursor() as cursor:
            joined = False
            if not self.id or self._beat_is_due():
                joined = self._join_or_renew(cursor)
            buried = self.membership.bury(cursor)
            changed = self.membership.balance(cursor, lambda lease: self.standing is not None)
        return joined or bool(buried) or changed

    def _beat_is_due(self) -> bool:
        # Without a clock of the test's own no test waits for a beat: then every step is one.
        now = self.membership.clock()
        return self.membership.clock is monotonic or now >= self._next_beat or not self.membership.trusted

    def _join_or_renew(self, cursor: Any) -> bool:
        joined = False
        if not self.id or not self.membership.renew(cursor):
            seed(cursor, self.membership.reconcilers.values())
            self.membership.join(cursor)
            joined = True
        self._next_beat = self.membership.clock() + self.membership.settings.tick_ms / 1_000
        return joined

    def tick(self, kind: str, *, limit: int = 100) -> int:
        """One turn: claim up to ``limit`` due keys of ``kind`` under what it holds, run them, write their ends.

        Returns how many keys ran; None ran when the member holds nothing.

        Raises
        ------
        RuntimeError
            When it stands still at a fault point, before or during the turn.
        """
        before = self.ran
        where = self.begin(kind, limit=limit)
        if where is not None:
            raise RuntimeError(f"The turn stands still at {where!r}; use run_until() and go_on().")
        return self.ran - before

    def run_until(self, point: Point, kind: str, *, limit: int = 1) -> bool:
        """Begin a turn and stand still at ``point``; False when the turn ended without reaching it."""
        self._stop_at = point
        return self.begin(kind, limit=limit) is not None

    def begin(self, kind: str, *, limit: int = 1) -> str | None:
        """Begin a turn; returns the point at which it stands still, or None when it has ended."""
        return self._actor.start(lambda: self._turn(kind, limit))

    def go_on(self) -> str | None:
        """Let it run on from the point at which it stands; returns where it stands next, or None at the end."""
        return self._actor.go_on()

    def finish(self) -> None:
        """Let the turn run to its end."""
        self._stop_at = None
        while self._actor.standing is not None:
            self._actor.go_on()

    def cut_heartbeat(self) -> None:
        """Lose the connection that beats: one missed beat later it counts as dead."""
        self._members.close()

    def cut_handler(self) -> None:
        """Have the server end the connection of the run that stands still, as a timeout or a failover does."""
        if self._handler_pid:
            with self._members.cursor() as cursor:
                session.terminate(cursor, self._handler_pid)

    def crash(self) -> None:
        """Die without a word: what was open rolls back, its row stays until it is buried."""
        self._actor.crash()
        self._members.close()

    def leave(self) -> None:
        """Give back every lease and end the membership, as a worker does on SIGTERM."""
        self.finish()
        with self._members.cursor() as cursor:
            self.membership.leave(cursor)
        self.membership.id = ""

    def close(self) -> None:
        """Leave if that is still possible, and let go of every connection."""
        if not self._actor.ended:
            with suppress(psycopg.Error):
                if self._actor.standing is None and self.id:
                    self.leave()
            self.crash()
        self._members.close()

    def _turn(self, kind: str, limit: int) -> None:
        hosted = registry.current()
        if not self._guarded:
            guard_thread(self._alias, {})
            self._guarded = True
        connections[self._alias].ensure_connection()
        self._handler_pid = connections[self._alias].connection.info.backend_pid
        self.problem = None
        try:
            with self._queue.cursor() as cursor:
                job = Job(hosted.reconciler_owner[kind], watched(hosted.reconcilers[kind], self._reach))
                self.ran += job.batch(cursor, self.membership, limit)
        except psycopg.Error as error:
            # As in a worker: the keys stay queued, and the next turn opens other connections.
            self.problem = error
        finally:
            self._handler_pid = 0

    def _reach(self, point: Point, keys: Sequence[str]) -> None:
        if point == self._stop_at or (self._stops is not None and self._stops(point, keys)):
            self._stop_at = None
            self._actor.stand(point)

    def _let_go(self) -> None:
        self._queue.close()
        connections.close_all()
