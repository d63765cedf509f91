"""What happens when: a schedule drawn from the seed alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: Mean seconds between two of a kind. Each happens at least once in a run.
EVERY: Final = {
    "kill": 4.0,
    "freeze past the lease": 6.0,
    "freeze and cut the heartbeat": 3.0,
    "cut connections": 4.0,
    "flush the broker": 4.0,
    "restart the broker": 15.0,
    "restart the database": 20.0,
}


@dataclass(frozen=True, slots=True)
class Mishap:
    """``what`` happens ``at`` seconds after the start, to ``slot``, for so ``long``; ``lot`` decides the rest."""

    at: float
    what: str
    slot: int
    long: float
    lot: int


def plan(seed: int, seconds: float, slots: int, ttl_seconds: float) -> list[Mishap]:
    """Every mishap of a run, in order."""
    found = []
    lengths: dict[str, Callable[[random.Random], float]] = {
        "freeze past the lease": lambda lots: ttl_seconds + lots.uniform(0.2, 1.5),
        # Longer than a beat, so that it is buried; shorter than the limit for an idle transaction.
        "freeze and cut the heartbeat": lambda lots: lots.uniform(0.3, 0.48) * ttl_seconds,
        "restart the broker": lambda lots: lots.uniform(0.0, 2.0),
    }
    for what, every in EVERY.items():
        lots = random.Random(f"{seed} {what}")  # noqa: S311 - a schedule, no secret
        at = min(lots.expovariate(1 / every), lots.uniform(0.2, 0.7) * seconds)
        while at < seconds:
            found.append(
                Mishap(
                    at,
                    what,
                    lots.randrange(slots),
                    lengths.get(what, lambda lots: 0.0)(lots),
                    lots.randrange(1_000_000),
                )
            )
            at += max(0.5, lots.expovariate(1 / every))
    return sorted(found, key=lambda mishap: mishap.at)
