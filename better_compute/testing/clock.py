"""A settable clock: every process of the database sees it move."""

from __future__ import annotations

from datetime import timedelta

from better_compute.store import clock


def advance_clock(by: timedelta) -> None:
    """Move ``compute_now()`` ahead of where it stands: leases end, keys become due."""
    clock.advance_offset(by)


def reset_clock() -> None:
    """Let ``compute_now()`` be the database's own time again."""
    clock.set_offset(timedelta(0))
