"""How long a failed key waits: exponential, capped, with jitter, and never for ever."""

from __future__ import annotations

import random
from typing import Final

BASE_MS: Final = 1_000
CAP_MS: Final = 960_000
#: An enqueue may bring a failing key back this early, so that the change that mends it is seen soon.
FLOOR_MS: Final = 30_000


def wait_ms(attempts: int, *, spread: random.Random | None = None) -> int:
    """Milliseconds until the next attempt of a key that has failed ``attempts`` times before: half to all of 2^n s."""
    longest: int = min(CAP_MS, BASE_MS * 2 ** min(attempts, 20))
    return round(longest * (spread or random).uniform(0.5, 1.0))


def floor_ms(wait: int) -> int:
    """Milliseconds below which no enqueue may pull a key that waits ``wait``."""
    return min(wait, FLOOR_MS)
