"""Puts back what tests leave behind."""

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


def take_baseline(using: str | None = None) -> None:
    """Keep the rows of every table, for :func:`restore_baseline`; call it once the test database is migrated.

    Parameters
    ----------
    using
        The alias of the owner's connection; by default the one that migrates.
    """
    fixture.take_baseline(using)


def restore_baseline(using: str | None = None) -> None:
    """Put every table back to the rows that :func:`take_baseline` kept, those of modules and Django's included.

    Takes the place of Django's flush, which truncates every table and makes content types and permissions
    anew: this touches only the tables that a test changed, and rows that migrations made are there again.
    The ledgers of migrations stay. Threads that send wake-ups let go of their connections first.
    """
    rest()
    fixture.restore_baseline(using)
