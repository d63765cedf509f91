"""One turn: claim due keys of one kind, run them, write how they ended. What a worker thread does all day.

While nobody else waits for the thread, the write of one batch and the claim of the next are one statement.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import get_ident
from time import monotonic, time
from typing import Any, Final

import psycopg

from better_compute import conf
from better_compute.engine import runs
from better_compute.engine.dispatch import TURN_SECONDS, Dispatcher, InFlight, Lane
from better_compute.engine.holds import Hold
from better_compute.engine.metrics import metrics
from better_compute.engine.shards import UNSHARDED
from better_compute.store import members, passes, work
from better_compute.store.claims import Claimed, Look
from better_compute.store.passes import Found
from better_compute.store.session import Session

log: Final = logging.getLogger(__name__)

#: A claimed key and the hold it runs under.
Claim = tuple[Claimed, Hold]


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
        lane = self.dispatcher.take()
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
        claims, more = self._pass(lane)
        if not claims:
            self._say_idle(lane)
            return more, self._next_due(lane)
        while claims:
            batch = self._run(lane, claims, more)
            if not batch.all_done or not self.dispatcher.goes_on(lane):
                self._write(lane, claims, batch)
                return True, None
            # The pass leaves out what this turn claimed, so it does not see those that had to be left unstarted.
            unstarted = batch.ran < len(claims)
            claims, more = self._pass(lane, claims, batch)
            more = more or unstarted
        return more, self._next_due(lane)

    def _run(self, lane: Lane, claims: Sequence[Claim], more: bool) -> runs.Batch:
        """Run what was claimed; its keys are marked as running until they are written."""
        try:
            if more and lane.shares:
                self.dispatcher.wake([(lane.name, claims[0][0].shard)])
            before = monotonic()
            batch = runs.run_keys(
                lane.spec,
                lane.reconciler,
                claims,
                may_start=lambda hold: self._may_start(lane, hold),
                until=before + TURN_SECONDS,
                started=lambda keys: self._started(lane, keys),
                fails=BaseException,
            )
        except BaseException:
            self._started(lane, ())
            self._release(lane, claims, claims)
            raise
        seconds = monotonic() - before
        lane.learn(batch.ran, seconds)
        self._count(lane, claims, batch, seconds)
        return batch

    def _write(self, lane: Lane, claims: Sequence[Claim], batch: runs.Batch) -> None:
        """Write how the claims ended, however they did."""
        left = {claimed.key: 0.0 for claimed, _ in claims}
        try:
            with self.queue.cursor() as cursor:
                left = batch.write(cursor, lane.membership.id)
            with self.dispatcher.changed:
                lane.cool_down(left, batch.ended)
        finally:
            deleted = {run.claimed.key for run in batch.done} - left.keys()
            self._release(lane, claims, [claim for claim in claims if claim[0].key not in deleted])

    def _pass(self, lane: Lane, ran: Sequence[Claim] = (), batch: runs.Batch | None = None) -> tuple[list[Claim], bool]:
        """Finish a batch of which all is done, if there is one, and claim what is due and note it.

        Returns keys with the holds they are to run under, marked as running, and whether there may be more.
        """
        member, left = lane.membership.id, list(ran)
        claims: list[Claim] = []
        try:
            # The note names what runs when it is written, so nobody may claim or note anything in between.
            with self.queue.cursor() as cursor:
                with self.dispatcher.changed:
                    look, pulled = lane.look(self.settings.batch), lane.pulled
                    others = self.dispatcher.noted_of(lane.membership, {claimed.key for claimed, _ in ran}, lane)
                if batch is not None:
                    found = passes.finish_and_claim(cursor, member, batch.done, look, others)
                    left = [claim for claim in ran if claim[0].key not in found.deleted]
                    with self.dispatcher.changed:
                        lane.cool_down(batch.forgive(cursor, member, found.deleted), found.deleted)
                elif look.shards:
                    found = passes.claim_noted(cursor, member, look, others)
                else:
                    return [], False
                claims, more = self._take(lane, look, found, raises=lane.pulled == pulled)
                if claims:
                    self._noted.add(member)
                elif batch is not None and not others:
                    self._noted.discard(member)
                if claims and (not found.noted or len(claims) != len(found.claimed)):
                    self._release(lane, ran, left)
                    self._note(cursor, lane)
        except BaseException:
            self._release(lane, claims, claims)
            raise
        finally:
            self._release(lane, ran, left)
        return claims, more

    def _take(self, lane: Lane, look: Look, found: Found, *, raises: bool) -> tuple[list[Claim], bool]:
        """Mark what was found as running; suspects alone, so that no other key can be taken for the culprit."""
        claimed = found.claimed
        if claimed and not found.noted:
            suspects = [each for each in claimed if each.suspect]
            claimed = suspects[:1] if claimed[0].suspect else [each for each in claimed if not each.suspect]
        claims = []
        with self.dispatcher.changed:
            lane.looked_at = found.at
            more = lane.raise_floors(look, found) if raises and len(claimed) == len(found.claimed) else True
            holds = {
                shard: lane.membership.hold_for(lane.reconciler, shard) for shard in {each.shard for each in claimed}
            }
            for each in claimed:
                hold = holds[each.shard]
                if hold is not None and each.key not in lane.running:
                    lane.running[each.key] = InFlight(each.id, hold.lease.name, found.at)
                    claims.append((each, hold))
        return claims, more

    def _next_due(self, lane: Lane) -> float | None:
        with self.dispatcher.changed:
            shards = [UNSHARDED if hold.shard is None else hold.shard for hold in lane.holds()]
            since = lane.looked_at
            if lane.ready or not shards:
                return None
        with self.queue.cursor() as cursor:
            wait = work.next_due(cursor, [lane.name], shards, since=since)
        if wait is None or wait.total_seconds() > self.settings.poll_ms / 1_000:
            return None
        return monotonic() + max(0.0, wait.total_seconds()) + 0.001

    def _note(self, cursor: Any, lane: Lane) -> bool:
        """Note what runs, on a cursor of the queue; whether that is anything."""
        with self.dispatcher.changed:
            running = self.dispatcher.noted_of(lane.membership)
        members.note_running(cursor, lane.membership.id, running)
        return bool(running)

    def _release(self, lane: Lane, claims: Sequence[Claim], left: Sequence[Claim]) -> None:
        """Mark claims as running no more; those ``left`` in the queue are to be found again."""
        with self.dispatcher.changed:
            for claimed, _ in claims:
                lane.running.pop(claimed.key, None)
            if left:
                lane.pull_floors(left)

    def _say_idle(self, lane: Lane) -> None:
        """Clear the note once nothing runs, so that a later death makes no suspects; every busy spell ends here."""
        member = lane.membership.id
        with self.dispatcher.changed:
            stale = member in self._noted and not self.dispatcher.noted_of(lane.membership)
        if stale:
            with self.queue.cursor() as cursor:
                # Another thread may have begun meanwhile; its keys must stay named.
                if not self._note(cursor, lane):
                    self._noted.discard(member)

    def _may_start(self, lane: Lane, hold: Hold) -> bool:
        membership = lane.membership
        return (
            membership.trusted
            and not hold.leaving
            and not hold.abort.aborted
            and not self.dispatcher.closed
            and not (membership.paused and membership.is_paused(lane.name))
        )

    def _started(self, lane: Lane, keys: Sequence[str]) -> None:
        thread = get_ident()
        if not keys:
            self.running.pop(thread, None)
        elif (running := self.running.get(thread)) is None:
            self.running[thread] = Running(lane.name, keys, monotonic())
        else:
            running.kind, running.keys, running.since, running.reported = lane.name, keys, monotonic(), False

    def _count(self, lane: Lane, claims: Sequence[Any], batch: runs.Batch, seconds: float) -> None:
        began = time() - seconds
        metrics.add_many(
            lane.name,
            claimed=len(claims),
            runs=batch.ran,
            done=len(batch.done),
            sync_again=len(batch.stay),
            retries=len(batch.failed),
            fence_rejections=batch.lost,
            work_duration_seconds=seconds,
            # Keys wait until their turn begins; the clocks of the two hosts may differ by a little.
            queue_duration_seconds=max(0.0, sum(began - claimed.due_at.timestamp() for claimed, _ in claims)),
        )
