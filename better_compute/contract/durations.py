"""Durations as module authors write them: ``"10m"``, ``"30s"``, ``"500ms"`` or a timedelta."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)", re.ASCII)

_UNIT_NAMES = ", ".join(_UNITS_MS)


def milliseconds(duration: str | timedelta) -> int:
    """Return ``duration`` in whole milliseconds.

    Raises
    ------
    ValueError
        When it is neither a timedelta nor a number followed by ms, s, m, h or d.
    """
    if isinstance(duration, timedelta):
        return round(duration.total_seconds() * 1_000)
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if match is None:
        raise ValueError(f"{duration!r} is no duration; write a number and a unit ({_UNIT_NAMES}), e.g. '10m'.")
    return int(match[1]) * _UNITS_MS[match[2]]
