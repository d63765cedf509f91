"""One turn: claim due keys of one kind, run them, write how they ended. What a worker thread does all day."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import get_ident
from time import monotonic
from typing import Any, Final

import psycopg

from better_compute import conf
from better_compute.engine import runs
from better_compute.engine.dispatch import TURN_SECONDS, Dispatcher, Lane, shards_of
from better_compute.engine.holds import Hold
from better_compute.engine.metrics import metrics
from better_compute.store import leases, work
from better_compute.store.session import Session
from better_compute.store.work import Claimed

log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Running:
    """What a thread runs right now, for the watchdog."""

    kind: str
    keys: Sequence[str]
    since: float
    reported: bool = False


@dataclass(slots=True)
class Turns:
    """Takes turns for the threads of one process. ``queue`` is the engine's own connection for claims and ends."""

    dispatcher: Dispatcher
    queue: Session
    settings: conf.Worker
    #: Thread ident to what it runs.
    running: dict[int, Running] = field(default_factory=dict)
    #: Members whose row names keys.
    _noted: set[str] = field(default_factory=set)

    def run_next(self) -> bool:
        """Wait for a lane and take one turn of it; False when the process stops."""
        lane = self.dispatcher.take(self.settings.threads)
        if lane is None:
            return False
        again, timer = False, None
        try:
            again, timer = self._turn(lane)
        except psycopg.Error as error:
            log.warning("a turn of %s could not be finished; its keys stay queued: %s", lane.name, error)
            timer = monotonic() + 0.5
        finally:
            self.dispatcher.give_back(lane, again=again, timer=timer)
        return True

    def _turn(self, lane: Lane) -> tuple[bool, float | None]:
        limit = lane.limit(self.settings.batch)
        claims, full = self._claim(lane, limit)
        if not claims:
            self._say_idle(lane)
            return full, self._next_due(lane)
        try:
            self._note(lane)
            if full:
                # There is more than this turn takes: let another thread look too.
                self.dispatcher.wake([(lane.name, claims[0][0].shard)])
            before = monotonic()
            batch = runs.run_keys(
                lane.spec,
                lane.reconciler,
                claims,
                may_start=lambda hold: self._may_start(lane, hold),
                until=before + TURN_SECONDS,
                started=lambda keys: self._started(lane, keys),
            )
            seconds = monotonic() - before
            with self.queue.cursor() as cursor:
                left = batch.write(cursor, lane.membership.id)
            self._count(lane, claims, batch, seconds)
        finally:
            self._release(lane, claims)
        with self.dispatcher.changed:
            lane.learn(batch.ran, seconds)
            lane.cool_down(left, [run.claimed.key for run in batch.done])
        return True, None

    def _claim(self, lane: Lane, limit: int) -> tuple[list[tuple[Claimed, Hold]], bool]:
        """Due keys with the holds they run under, marked as running; and whether there may be more."""
        with self.dispatcher.changed:
            shards, skipped = shards_of(lane), lane.skipped()
        if not shards:
            return [], False
        with self.queue.cursor() as cursor:
            found = work.claim(
                cursor,
                lane.name,
                shards,
                running=skipped,
                limit=limit,
                per_shard=max(1, -(-limit // 8)) if len(shards) > 1 else limit,
            )
        if any(claimed.suspect for claimed in found):
            # Its last process died: alone, so that no other key can be taken for the culprit.
            found = (
                [claimed for claimed in found if claimed.suspect][:1]
                if found[0].suspect
                else [claimed for claimed in found if not claimed.suspect]
            )
        claims = []
        with self.dispatcher.changed:
            for claimed in found:
                hold = lane.membership.hold_for(lane.reconciler, claimed.shard)
                if hold is not None and claimed.key not in lane.running:
                    lane.running[claimed.key] = (claimed.id, hold.lease.name)
                    claims.append((claimed, hold))
        return claims, len(found) >= limit

    def _next_due(self, lane: Lane) -> float | None:
        with self.dispatcher.changed:
            shards = shards_of(lane)
        if not shards:
            return None
        with self.queue.cursor() as cursor:
            wait = work.next_due(cursor, [lane.name], shards)
        if wait is None or wait.total_seconds() > self.settings.poll_ms / 1_000:
            return None
        return monotonic() + max(0.0, wait.total_seconds()) + 0.001

    def _note(self, lane: Lane) -> None:
        with self.queue.cursor() as cursor:
            with self.dispatcher.changed:
                running = self.dispatcher.running_of(lane.membership)
            leases.note_running(cursor, lane.membership.id, running)
        self._noted.add(lane.membership.id)

    def _release(self, lane: Lane, claims: Sequence[tuple[Claimed, Hold]]) -> None:
        with self.dispatcher.changed:
            for claimed, _ in claims:
                lane.running.pop(claimed.key, None)

    def _say_idle(self, lane: Lane) -> None:
        """Clear the note once nothing runs, so that a later death makes no suspects; every busy spell ends here."""
        member = lane.membership.id
        with self.dispatcher.changed:
            stale = member in self._noted and not self.dispatcher.running_of(lane.membership)
        if stale:
            with self.queue.cursor() as cursor:
                with self.dispatcher.changed:
                    # Another thread may have begun meanwhile; its keys must stay named.
                    running = self.dispatcher.running_of(lane.membership)
                leases.note_running(cursor, member, running)
                if not running:
                    self._noted.discard(member)

    def _may_start(self, lane: Lane, hold: Hold) -> bool:
        return (
            not self.dispatcher.closed
            and not hold.leaving
            and not hold.abort.aborted
            and lane.membership.trusted
            and not lane.membership.is_paused(lane.name)
        )

    def _started(self, lane: Lane, keys: Sequence[str]) -> None:
        if keys:
            self.running[get_ident()] = Running(lane.name, keys, monotonic())
        else:
            self.running.pop(get_ident(), None)

    def _count(self, lane: Lane, claims: Sequence[Any], batch: runs.Batch, seconds: float) -> None:
        metrics.add_many(
            lane.name,
            claimed=len(claims),
            runs=batch.ran,
            done=len(batch.done),
            sync_again=len(batch.stay),
            retries=len(batch.failed),
            fence_rejections=batch.lost,
            work_duration_seconds=seconds,
        )
