"""Several members in one process, in virtual time, through a schedule of mishaps that a seed decides.

Everything but the database is in this process and moves one at a time: which member goes on, for how long it freezes,
when it crashes, which hints a broker loses, how far the time leaps. The database is a real one, with its clock
frozen to the virtual time. The same seed gives the same schedule, so a failure can be looked at again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from better_compute import conf, registry
from better_compute.store import frozen, transaction
from better_compute.store.session import Session
from better_compute.testing.faults import Point
from better_compute.testing.member import SimulatedMember

#: Set to a seed to repeat one simulation.
SEED_VARIABLE: Final = "COMPUTE_SIMULATION_SEED"
#: How likely each kind of step is.
WEIGHTS: Final = {"work": 60, "load": 18, "time": 12, "mishap": 10}
MISHAPS: Final = (
    "freeze", "freeze", "crash", "cut the heartbeat", "end the run's connection", "fail a run", "lose hints", "broker",
)  # fmt: skip
#: Steps that the report of a failure tells.
TOLD: Final = 40
#: Virtual seconds in which everything that is queued must have run once all is well again.
SETTLE_SECONDS: Final = 4_000


class SimulationFailed(AssertionError):
    """What a check said, with the seed that leads there again and the steps before."""

    def __init__(self, seed: int, step: int, error: BaseException, told: Sequence[str]) -> None:
        super().__init__(
            f"seed {seed} failed at step {step}: {type(error).__name__}: {error}\n"
            f"Repeat it with {SEED_VARIABLE}={seed}. The last steps:\n  " + "\n  ".join(told)
        )
        self.seed = seed


class Mishap(Exception):
    """Raised inside a run that the schedule wants to fail."""


@dataclass
class _Place:
    """Where one member after the other lives."""

    number: int
    member: SimulatedMember
    #: Virtual seconds until which it does not move.
    frozen_until: float = 0.0
    #: Kinds it has reason to look at.
    ready: set[str] = field(default_factory=set)
    next_poll: float = 0.0


class Simulation:
    """One schedule.

    Parameters
    ----------
    seed
        Decides everything.
    load
        Called now and then with the source of its decisions; commits wake-ups.
    check
        Called after every step; raises AssertionError when something is wrong.
    members
        How many live at a time.
    """

    def __init__(
        self,
        seed: int,
        *,
        load: Callable[[random.Random], None],
        check: Callable[[], None] = lambda: None,
        members: int = 3,
    ) -> None:
        self.seed = seed
        self.now = 0.0
        self.steps = 0
        self.told: list[str] = []
        self.counts: dict[str, int] = {}
        self._lots = random.Random(seed)  # noqa: S311 - a schedule, no secret
        self._load, self._check, self._size = load, check, members
        self._places: list[_Place] = []
        self._clock = Session(conf.current().owner_database, "compute-simulation", {})
        self._broker_up = True
        self._fails_next = False
        self._stopping = False
        worker = conf.current().worker
        self._ttl, self._tick, self._poll = worker.ttl_ms / 1_000, worker.tick_ms / 1_000, worker.poll_ms / 1_000

    def run(self, steps: int = 300) -> None:
        """Go through ``steps`` steps, then let all be well until nothing is queued.

        Raises
        ------
        SimulationFailed
            When a check fails, or keys stay queued.
        """
        with self._world():
            self._places += [_Place(number, self._member()) for number in range(self._size)]
            try:
                for _ in range(steps):
                    self.steps += 1
                    self._step()
                    self._check()
                self._settle()
                self._check()
            except Exception as error:
                raise SimulationFailed(self.seed, self.steps, error, self.told[-TOLD:]) from error

    @contextmanager
    def _world(self) -> Iterator[None]:
        before = random.getstate()
        # What the engine draws by itself, e.g. the jitter of a backoff, is decided by the seed too.
        random.seed(self.seed)
        with ExitStack() as stack:
            stack.callback(random.setstate, before)
            stack.callback(self._clock.close)
            with self._clock.cursor() as cursor:
                definition = frozen.freeze(cursor)
            stack.callback(self._thaw, definition)
            stack.callback(self._close)
            stack.callback(transaction.wake_with(self._hint))
            yield

    def _thaw(self, definition: str) -> None:
        with self._clock.cursor() as cursor:
            frozen.thaw(cursor, definition)

    def _close(self) -> None:
        for place in self._places:
            place.member.close()

    def _member(self) -> SimulatedMember:
        return SimulatedMember(
            clock=lambda: self.now,
            fresh_id=lambda: str(UUID(int=self._lots.getrandbits(128), version=4)),
            stops=self._stops,
        )

    def _stops(self, point: Point, keys: Sequence[str]) -> bool:
        if self._stopping:
            return False
        if self._fails_next:
            self._fails_next = False
            raise Mishap(f"at {point}")
        return self._lots.random() < 0.3

    def _hint(self, kind: str, shard: int) -> None:
        """A commit's hint reaches every member that runs the kind, unless the broker is down."""
        if self._broker_up:
            for place in self._places:
                if kind in place.member.membership.reconcilers:
                    place.ready.add(kind)

    def _tell(self, what: str) -> None:
        self.told.append(f"{self.now:8.2f} s  {what}")
        word = what.partition(":")[0]
        self.counts[word] = self.counts.get(word, 0) + 1

    def _step(self) -> None:
        what = self._lots.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if what == "load":
            self._tell("load")
            self._load(self._lots)
        elif what == "time":
            self._advance(self._lots.uniform(0.0, 0.6 * self._tick))
        elif what == "mishap":
            self._mishap(self._lots.choice(MISHAPS), self._lots.choice(self._places))
        else:
            awake = [place for place in self._places if place.frozen_until <= self.now]
            if awake:
                self._work(self._lots.choice(awake))
            else:
                self._advance(self._tick)

    def _work(self, place: _Place) -> None:
        member = place.member
        if self._lots.random() < 0.4:
            self._tell(f"beat: member {place.number}")
            self._keep(place)
        elif member.standing is not None:
            self._tell(f"go on: member {place.number} from {member.standing}")
            member.go_on()
        else:
            if self.now >= place.next_poll:
                place.next_poll = self.now + self._poll
                place.ready.update(member.kinds)
            if place.ready:
                kind = self._lots.choice(sorted(place.ready))
                place.ready.discard(kind)
                where = member.begin(kind, limit=self._lots.choice((1, 2, 5)))
                self._tell(f"turn: member {place.number} of {kind}, to {where or 'the end'}")

    def _keep(self, place: _Place) -> None:
        if place.member.step():
            place.ready.update(place.member.kinds)

    def _mishap(self, what: str, place: _Place) -> None:
        self._tell(f"{what}: member {place.number} at {place.member.standing or 'rest'}")
        if what == "freeze":
            place.frozen_until = self.now + self._lots.uniform(0.2, 1.6) * self._ttl
            if self._lots.random() < 0.5:
                self._pass(place.frozen_until - self.now)
        elif what == "crash":
            place.member.crash()
            place.member, place.ready, place.frozen_until = self._member(), set(), 0.0
        elif what == "cut the heartbeat":
            place.member.cut_heartbeat()
        elif what == "end the run's connection":
            place.member.cut_handler()
        elif what == "fail a run":
            self._fails_next = True
        elif what == "lose hints":
            for each in self._places:
                each.ready.clear()
        else:
            self._broker_up = not self._broker_up

    def _advance(self, seconds: float) -> None:
        self.now += seconds
        with self._clock.cursor() as cursor:
            frozen.set_offset(cursor, timedelta(seconds=self.now))

    def _pass(self, seconds: float) -> None:
        """Let time pass while those who are awake beat."""
        until = self.now + seconds
        while self.now < until:
            self._advance(min(self._tick / 2, until - self.now))
            for place in self._places:
                if place.frozen_until <= self.now:
                    self._keep(place)

    def _settle(self) -> None:
        self._tell("settle")
        self._broker_up, self._fails_next, self._stopping = True, False, True
        for place in self._places:
            place.frozen_until = 0.0
            place.member.finish()
        until = self.now + SETTLE_SECONDS
        while self.now < until:
            wait = self._queued()
            if wait is None:
                return
            self._pass(min(max(wait, self._tick), 60.0))
            for place in self._places:
                for kind in place.member.kinds:
                    place.member.tick(kind)
        raise AssertionError(f"keys stay queued {SETTLE_SECONDS} s after all was well")

    def _queued(self) -> float | None:
        """Seconds until the next key that is not periodic becomes due; None when nothing is queued."""
        with self._clock.cursor() as cursor:
            return frozen.next_wait(cursor, sorted(registry.current().reconcilers))


def seeds(count: int, given: str | None) -> Sequence[int]:
    """The one of the environment, or ``count`` from 1 on."""
    return [int(given)] if given else range(1, count + 1)


def simulate(
    seed: int,
    *,
    load: Callable[[random.Random], None],
    check: Callable[[], None] = lambda: None,
    members: int = 3,
    steps: int = 300,
) -> Any:
    """Run one schedule; see :class:`Simulation`. Returns how often each thing happened."""
    simulation = Simulation(seed, load=load, check=check, members=members)
    simulation.run(steps)
    return simulation.counts
