"""The database's clock beside this process's, and whether it is set off for tests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from better_compute import conf
from better_compute.contract.findings import Finding
from better_compute.store import health


def check(using: str) -> Iterator[Finding]:
    """Compare the clocks; half the statement's round trip is taken off."""
    before = datetime.now(UTC)
    read = health.clock(using)
    after = datetime.now(UTC)
    difference = read.time - (before + (after - before) / 2)
    tolerance = timedelta(milliseconds=conf.current().clock_tolerance_ms)
    if abs(difference) > tolerance:
        where = "ahead of" if difference > timedelta(0) else "behind"
        yield Finding(
            check="clock.difference",
            severity="warning",
            message=f"The database's clock is {abs(difference).total_seconds():.1f} s {where} this process's.",
            fix="Set both hosts' clocks right (NTP); leases and due times follow the database's.",
        )
    if read.offset:
        yield Finding(
            check="clock.offset",
            severity="warning",
            message=f"compute_now() is set {read.offset.total_seconds():.1f} s off the database's clock.",
            fix="Outside tests and simulation, set clock_offset in compute_clock to zero.",
        )
