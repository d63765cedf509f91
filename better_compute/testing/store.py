"""Empties what tests leave behind in the core's tables."""

from __future__ import annotations

from better_compute.engine.wakeup import rest
from better_compute.store import fixture


def clear_store() -> None:
    """Delete work, pauses, leases, members, processes, outbox and audit records, and set the clock right.

    Threads that send wake-ups let go of their connections first.

    Needs the role that owns the tables: append-only triggers are disabled inside the transaction, which
    the role that serves cannot do. The migration ledger and the store's identity stay.
    """
    rest()
    fixture.clear()
