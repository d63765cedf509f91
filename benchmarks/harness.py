"""Runs contestants in interleaved rounds, compares them, and keeps every raw sample.

A group declares contests (who runs, in which unit) and figures (which two contestants are compared, or
whose value is judged, and the bar). Rounds alternate the order of the contestants, so that a machine that
gets slower or faster while the group runs changes all of them alike.

::

    drain = Contest("no-op drain", "keys/s", {"ours": drain_ours, "bare psycopg": drain_bare})
    Group(contests=[drain], figures=[Figure("no-op drain, one process", drain, "bare psycopg", ">= 0.7 x")])
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from benchmarks.bars import STATED, Bar

#: One measurement: does the work once and returns its value in the contest's unit.
Measure = Callable[[], float]

OURS: Final = "ours"
#: Fewest rounds that count as a measurement.
ROUNDS: Final = 5


@dataclass(frozen=True, slots=True)
class Contest:
    """Contestants that do the same work, measured in turn, round by round.

    Parameters
    ----------
    name
        What the work is.
    unit
        Unit of every sample.
    contestants
        Measures by name; ``ours`` is one of them.
    rounds
        Counted rounds (at least five), after ``warm_up`` that are thrown away.
    configuration
        What each contestant runs with, shown in the output.
    """

    name: str
    unit: str
    contestants: Mapping[str, Measure]
    rounds: int = ROUNDS
    warm_up: int = 1
    configuration: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if OURS not in self.contestants:
            raise ValueError(f"Contest {self.name!r} has no contestant named {OURS!r}.")
        if self.rounds < ROUNDS:
            raise ValueError(f"Contest {self.name!r} has {self.rounds} rounds; at least {ROUNDS} are needed.")

    def run(self, progress: Callable[[str], None] = lambda line: None, until: float | None = None) -> Samples:
        """Run every contestant once a round, in an order that turns round each time.

        Rounds beyond the fewest that count are left out once ``time.monotonic()`` has passed ``until``.
        """
        samples: dict[str, list[float]] = {name: [] for name in self.contestants}
        order = list(self.contestants)
        for number in range(-self.warm_up, self.rounds):
            if until is not None and number >= ROUNDS and monotonic() >= until:
                progress(f"{self.name}: {number} rounds, for the time is over")
                break
            for name in order if number % 2 == 0 else reversed(order):
                # A collection that one contestant's garbage causes must not fall into another's time.
                gc.collect()
                value = self.contestants[name]()
                if number >= 0:
                    samples[name].append(value)
                    progress(f"{self.name}: round {number + 1}/{self.rounds}, {name}: {value:,.4g} {self.unit}")
        return Samples(self.name, self.unit, samples, dict(self.configuration))


@dataclass(frozen=True, slots=True)
class Samples:
    """The raw samples of a contest."""

    contest: str
    unit: str
    values: Mapping[str, Sequence[float]]
    configuration: Mapping[str, str]

    def median(self, contestant: str) -> float:
        """The middle sample of ``contestant``."""
        return statistics.median(self.values[contestant])

    def ratios(self, contestant: str, peer: str) -> list[float]:
        """``contestant`` over ``peer`` in each round."""
        return [mine / theirs for mine, theirs in zip(self.values[contestant], self.values[peer], strict=True)]

    def document(self) -> dict[str, Any]:
        """What ``results/<group>.json`` keeps."""
        return {
            "contest": self.contest,
            "unit": self.unit,
            "contestants": {
                name: {
                    "samples": list(values),
                    "median": statistics.median(values),
                    "min": min(values),
                    "max": max(values),
                    "configuration": self.configuration.get(name, ""),
                }
                for name, values in self.values.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure that an issue names.

    ``peer`` names the contestant that ``of`` is compared with; without a peer the bar judges the value. The bar
    ``stated`` judges nothing.
    """

    name: str
    contest: Contest
    peer: str | None
    bar: str
    of: str = OURS
    #: Said beside the figure: what the peer does more, or what was left out.
    note: str = ""

    def __post_init__(self) -> None:
        for contestant in filter(None, (self.of, self.peer)):
            if contestant not in self.contest.contestants:
                raise ValueError(f"Figure {self.name!r} compares {contestant!r}, which its contest does not run.")
        if self.bar != STATED and Bar.parse(self.bar).is_ratio and self.peer is None:
            raise ValueError(f"Figure {self.name!r} has a bar on a ratio and no peer.")

    def result(self, samples: Samples) -> Result:
        """Compare medians and judge the bar."""
        value = samples.median(self.of)
        peer_value = samples.median(self.peer) if self.peer else None
        ratio = value / peer_value if peer_value else None
        holds = True
        if self.bar != STATED:
            bar = Bar.parse(self.bar)
            measured = ratio if bar.is_ratio else value
            if measured is None:
                raise ValueError(f"Figure {self.name!r}: the peer {self.peer!r} measured 0, so there is no ratio.")
            holds = bar.holds(measured)
        rounds = samples.ratios(self.of, self.peer) if self.peer else list(samples.values[self.of])
        return Result(
            name=self.name,
            value=value,
            unit=samples.unit,
            peer=self.peer,
            peer_value=peer_value,
            ratio=ratio,
            bar=self.bar,
            holds=holds,
            spread=(min(rounds), max(rounds)),
            note=self.note,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """A figure as measured. ``spread`` is that of the round-by-round ratio, or of the value without a peer."""

    name: str
    value: float
    unit: str
    peer: str | None
    peer_value: float | None
    ratio: float | None
    bar: str
    holds: bool
    spread: tuple[float, float]
    note: str = ""

    def entry(self) -> dict[str, Any]:
        """The entry of ``results.json``."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "peer": self.peer,
            "peer_value": self.peer_value,
            "ratio": self.ratio,
            "bar": self.bar,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that one run of ``ONLY=<group>`` measures."""

    figures: Sequence[Figure]

    def contests(self) -> list[Contest]:
        """Each contest once, in the order of the figures."""
        return list({id(figure.contest): figure.contest for figure in self.figures}.values())

    def run(self, progress: Callable[[str], None] = lambda line: None, until: float | None = None) -> GroupRun:
        """Run every contest. One that raises takes only its own figures with it.

        Up to ``until``, on the monotonic clock, each may take an equal share of the time that those before it left.
        """
        samples: dict[int, Samples] = {}
        failures: dict[int, BaseException] = {}
        contests = self.contests()
        for number, contest in enumerate(contests):
            now = monotonic()
            share = None if until is None else now + (until - now) / (len(contests) - number)
            try:
                samples[id(contest)] = contest.run(progress, share)
            except Exception as error:
                progress(f"{contest.name}: FAILED: {type(error).__name__}: {error}")
                failures[id(contest)] = error
        results, failed = [], {}
        for figure in self.figures:
            try:
                if id(figure.contest) in failures:
                    raise failures[id(figure.contest)]
                results.append(figure.result(samples[id(figure.contest)]))
            except Exception as error:
                failed[figure.name] = f"{type(error).__name__}: {error}"
        return GroupRun(results, failed, list(samples.values()))


@dataclass(frozen=True, slots=True)
class GroupRun:
    """What a group measured, and why each of the rest was not."""

    results: Sequence[Result]
    failed: Mapping[str, str]
    samples: Sequence[Samples]
