"""Decides which kind gets the next turn of a worker thread.

Each kind has its own queue. Threads take kinds in rotation, so a kind with a hundred thousand keys delays
another by one turn; and one thread more than a kind may have is kept for the others, however long its runs
hang. How many keys a turn claims follows from how long the kind's runs take: slow keys are claimed one by one,
so that free threads find the rest, and fast ones by the batch.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Condition, RLock
from time import monotonic
from typing import Final, NamedTuple

from better_compute import conf
from better_compute.contract.module import ModuleSpec
from better_compute.contract.reconcilers import BatchReconciler, Reconciler
from better_compute.engine.holds import Floor, Hold
from better_compute.engine.membership import Membership
from better_compute.engine.shards import UNSHARDED
from better_compute.store.claims import NO_FLOOR, Claimed, Look
from better_compute.store.passes import Found, Noted
from better_compute.store.wakeups import Pair

_spread: Final = secrets.SystemRandom()

#: What one turn should take.
TURN_SECONDS: Final = 0.05
#: A kind whose keys take less than this is drained fastest by one thread: more of them contend for the interpreter.
SHARED_SECONDS: Final = 0.00005
#: So many batches of such a kind are claimed at once, which take half a turn at most: a pass costs a good part of its
#: time whatever its size.
CHEAP_BATCHES: Final = 5
#: A transaction may take so long between its enqueue and its commit before the key has to wait for a poll.
FLOOR_MARGIN: Final = timedelta(milliseconds=500)
#: A key that ran and is due still (an enqueuer holds its row) is left alone for a while, doubling.
COOL_SECONDS: Final = (0.01, 0.5)


class InFlight(NamedTuple):
    """A key that runs: its incarnation, the lease it runs under, and when it was claimed on the database's clock."""

    id: int
    lease: str
    since: datetime


@dataclass(slots=True)
class Lane:
    """One reconciler's queue, as this process runs it."""

    spec: ModuleSpec
    reconciler: Reconciler
    membership: Membership
    #: Something may be due.
    ready: bool = False
    turns: int = 0
    #: Seconds a key takes, smoothed; unknown before the first run.
    cost: float | None = None
    #: By key, while it runs.
    running: dict[str, InFlight] = field(default_factory=dict)
    #: Key to (monotonic time until which it is left alone, how often in a row).
    cool: dict[str, tuple[float, int]] = field(default_factory=dict)
    #: ``monotonic()`` at which the next key becomes due.
    timer: float | None = None
    start: int = 0
    #: When the last pass looked, on the database's clock; what becomes due later waits for a timer.
    looked_at: datetime | None = None
    #: The next pass looks at everything that is due, whatever the floors say.
    from_the_start: bool = True
    #: How often a floor was pulled back; a pass that was under way meanwhile raises none.
    pulled: int = 0

    @property
    def name(self) -> str:
        """The kind."""
        return self.reconciler.name

    def limit(self, batch: int) -> int:
        """How many keys the next turn claims."""
        if isinstance(self.reconciler, BatchReconciler):
            return batch
        if self.cost is None:
            return 1
        most = batch if self.shares else batch * CHEAP_BATCHES
        return max(1, min(most, int(TURN_SECONDS / max(self.cost, 1e-6))))

    @property
    def shares(self) -> bool:
        """Whether another thread should look too while a turn of this kind runs."""
        return self.cost is None or self.cost > SHARED_SECONDS

    def learn(self, ran: int, seconds: float) -> None:
        """Take the mean of a turn into account."""
        if ran:
            mean = seconds / ran
            self.cost = mean if self.cost is None else 0.7 * self.cost + 0.3 * mean

    def skipped(self) -> list[str]:
        """Keys that must not be claimed now."""
        now = monotonic()
        for key, (until, _) in tuple(self.cool.items()):
            if until + 1 < now:
                del self.cool[key]
        return [*self.running, *(key for key, (until, _) in self.cool.items() if until > now)]

    def holds(self) -> list[Hold]:
        """The holds under which its keys may be started now."""
        return self.membership.holds_of(self.reconciler)

    def look(self, batch: int) -> Look:
        """What the next pass is to look for, beginning at another shard each time."""
        holds = self.holds()
        self.start = (self.start + 17) % max(1, len(holds))
        holds = holds[self.start :] + holds[: self.start]
        limit = self.limit(batch)
        # What cools may lie below a floor.
        floored = not self.from_the_start and not self.cool
        self.from_the_start = False
        return Look(
            kind=self.name,
            shards=[UNSHARDED if hold.shard is None else hold.shard for hold in holds],
            floors=[
                hold.floors[self.name].text if floored and self.name in hold.floors else NO_FLOOR for hold in holds
            ],
            running=self.skipped(),
            limit=limit,
            per_shard=max(1, -(-limit // 8)) if len(holds) > 1 else limit,
        )

    def raise_floors(self, look: Look, found: Found) -> bool:
        """Remember how far a pass looked; True when it may have left due keys behind."""
        drained = Floor.of(found.at - FLOOR_MARGIN)
        ends = found.looked_through(look)
        for shard, end in ends.items():
            hold = self.membership.hold_for(self.reconciler, shard)
            if hold is not None:
                hold.floors[self.name] = drained if end is None else Floor.of(end)
        return len(ends) < len(look.shards) or any(end is not None for end in ends.values())

    def pull_floors(self, left: Iterable[tuple[Claimed, Hold]]) -> None:
        """Have claims that stay in the queue found again."""
        self.pulled += 1
        for claimed, hold in left:
            floor = hold.floors.get(self.name)
            if floor is not None and claimed.due_at < floor.at:
                hold.floors[self.name] = Floor.of(claimed.due_at)

    def cool_down(self, left: Mapping[str, float], ran: Iterable[str]) -> None:
        """Leave alone for a moment, or for so many seconds, keys that ran and are due still."""
        now = monotonic()
        for key in ran:
            if key not in left:
                self.cool.pop(key, None)
        for key, seconds in left.items():
            times = self.cool[key][1] + 1 if key in self.cool else 0
            pause = max(seconds, min(COOL_SECONDS[0] * 2**times, COOL_SECONDS[1]))
            self.cool[key] = (now + pause, times)
            self.timer = min(self.timer or now + pause, now + pause)


class Dispatcher:
    """The lanes of a process, and the condition its threads wait on."""

    def __init__(self, lanes: Sequence[Lane], settings: conf.Worker) -> None:
        self.lanes = {lane.name: lane for lane in lanes}
        lock = RLock()
        #: Threads wait on it for a turn.
        self.changed = Condition(lock)
        #: Notified when a turn ends.
        self.rested = Condition(lock)
        self._settings = settings
        self._rotation = deque(lanes)
        self._next_poll = monotonic()
        self._closed = False

    def close(self) -> None:
        """Give no more turns."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()
            self.rested.notify_all()

    @property
    def threads(self) -> int:
        """How many threads take turns: as many as one kind may have, and one for the others if there are any."""
        return self._settings.threads + (len(self.lanes) > 1)

    @property
    def closed(self) -> bool:
        """Whether the process is stopping."""
        return self._closed

    def wake(self, pairs: Iterable[Pair] | None) -> None:
        """Say that (kind, shard) pairs may have due work, or with None that any may."""
        with self.changed:
            named = list(self._named(pairs))
            for lane in named:
                lane.ready = True
                lane.from_the_start = lane.from_the_start or pairs is None
            self.changed.notify(len(named))

    def note(self, kind: str, shard: int) -> None:
        """A commit in this very process enqueued work."""
        if kind in self.lanes:
            self.wake([(kind, shard)])

    def _named(self, pairs: Iterable[Pair] | None) -> Iterable[Lane]:
        if pairs is None:
            return list(self.lanes.values())
        found = []
        for kind, shard in pairs:
            lane = self.lanes.get(kind)
            if lane is not None and lane.membership.hold_for(lane.reconciler, shard) is not None:
                found.append(lane)
        return found

    def take(self) -> Lane | None:
        """Wait for a lane that may have work, and start a turn of it; None when the process stops."""
        with self.changed:
            while not self._closed:
                self._ring()
                lane = self._choose()
                if lane is not None:
                    lane.ready = False
                    lane.turns += 1
                    if any(other.ready or other.timer is not None for other in self.lanes.values()):
                        # Another thread has to look after those, and at how long it may wait.
                        self.changed.notify()
                    return lane
                self.changed.wait(self._patience())
            return None

    def _choose(self) -> Lane | None:
        busy = sum(lane.turns for lane in self.lanes.values())
        for _ in range(len(self._rotation)):
            lane = self._rotation[0]
            self._rotation.rotate(-1)
            if not lane.ready or lane.membership.is_paused(lane.name) or not lane.membership.trusted:
                continue
            # The last free thread is kept for a kind that has none.
            if lane.turns and busy + 1 >= self.threads and len(self.lanes) > 1:
                continue
            if lane.membership.holds_of(lane.reconciler):
                return lane
            lane.ready = False
        return None

    def _ring(self) -> None:
        now = monotonic()
        if now >= self._next_poll:
            self._next_poll = now + self._settings.poll_ms / 1_000 * _spread.uniform(0.8, 1.2)
            for lane in self.lanes.values():
                lane.ready = lane.from_the_start = True
        for lane in self.lanes.values():
            if lane.timer is not None and now >= lane.timer:
                lane.timer = None
                lane.ready = True

    def _patience(self) -> float:
        ends = [self._next_poll, *(lane.timer for lane in self.lanes.values() if lane.timer is not None)]
        return max(0.001, min(ends) - monotonic())

    def give_back(self, lane: Lane, *, again: bool, timer: float | None = None) -> None:
        """End a turn. ``again``: more may be due at once; ``timer``: monotonic time at which more will be."""
        with self.changed:
            lane.turns -= 1
            lane.ready = lane.ready or again
            if timer is not None:
                lane.timer = timer if lane.timer is None else min(lane.timer, timer)
            # A thread that waits may wait too long now, or for this lane.
            self.changed.notify()
            self.rested.notify_all()

    def runs_under(self, lease: str) -> bool:
        """Whether a key runs under ``lease``."""
        with self.changed:
            return any(lease == run.lease for lane in self.lanes.values() for run in lane.running.values())

    def goes_on(self, lane: Lane) -> bool:
        """Whether the thread of a turn may go on with the same lane, because nobody else waits for it."""
        with self.changed:
            if self._closed or not lane.membership.trusted or lane.membership.is_paused(lane.name):
                return False
            self._ring()
            others = any(other.ready and other is not lane for other in self.lanes.values())
            return not others or sum(other.turns for other in self.lanes.values()) < self.threads

    def noted_of(self, membership: Membership, but: Collection[str] = (), of: Lane | None = None) -> list[Noted]:
        """Everything that runs under ``membership``, except for the keys ``but`` of the lane ``of``."""
        noted: dict[tuple[str, datetime], Noted] = {}
        for lane in self.lanes.values():
            if lane.membership is membership:
                for key, run in lane.running.items():
                    if lane is not of or key not in but:
                        told = noted.setdefault((lane.name, run.since), Noted(lane.name, [], [], run.since))
                        told.keys.append(key)
                        told.ids.append(run.id)
        return list(noted.values())

    def idle(self) -> bool:
        """Whether no turn is under way and nothing is known to be due."""
        with self.changed:
            return not any(lane.turns or lane.ready for lane in self.lanes.values())
