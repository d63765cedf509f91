"""How long a command waits, as its options take it: seconds that a server can be told."""

from __future__ import annotations

from argparse import ArgumentTypeError

#: Longest wait, in seconds: PostgreSQL counts milliseconds in 31 bits.
LONGEST_S = 2_000_000.0


def lock_wait(text: str) -> float:
    """Seconds to wait for other migrators; 0 tries once."""
    return _seconds(text, least=0.0)


def lock_timeout(text: str) -> float:
    """Seconds to wait for table locks in each try; at least a millisecond, since 0 would tell PostgreSQL for ever."""
    return _seconds(text, least=0.001)


def _seconds(text: str, *, least: float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    # No comparison holds for what is no number.
    if not least <= seconds <= LONGEST_S:
        raise ArgumentTypeError(f"{text!r} must be seconds from {least:g} to {LONGEST_S:.0f}")
    return seconds
