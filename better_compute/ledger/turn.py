"""A migrator's turn: the lock is polled, held while everything runs, and checked when it is given back."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from better_compute.ledger.errors import LockLost, LockNotAcquired
from better_compute.store import migration_lock

#: How long a migrator waits for its turn, in seconds.
LOCK_WAIT_S = 60.0
#: Pause between two tries, in seconds; jittered by half of it.
POLL_S = 0.2
#: How often a waiting migrator says who holds the lock, in seconds.
REPORT_S = 5.0

Say = Callable[[str], None]


@contextmanager
def turn(connection: BaseDatabaseWrapper, *, wait: float = LOCK_WAIT_S, say: Say | None = None) -> Iterator[int]:
    """Hold the migration lock of ``connection``'s database.

    Yields the process id of the backend that holds it. Nothing blocks inside PostgreSQL while waiting.

    Parameters
    ----------
    wait
        Longest wait in seconds; 0 tries once.
    say
        Gets a line about who holds the lock, at once and then every few seconds.

    Raises
    ------
    LockNotAcquired
        When another migrator holds the lock for longer than ``wait``.
    LockLost
        On leaving, when the connection is no longer the one that took the lock.
    """
    backend = _acquire(connection, wait, say)
    try:
        yield backend
    except BaseException:
        # The reason of the failure matters more than what became of the lock.
        _release_quietly(connection)
        raise
    released, now = migration_lock.release(connection)
    if not released or now != backend:
        raise LockLost(
            f"The migration lock was taken by PostgreSQL process {backend}, but the connection is now served by "
            f"process {now}, so other migrators may have run beside this one.",
            mend="Migrate over a direct connection, not through a transaction pooler (COMPUTE['MIGRATION_DATABASE']); "
            f"if process {backend} still stands in pg_locks, end it with pg_terminate_backend({backend}).",
        )


def _acquire(connection: BaseDatabaseWrapper, wait: float, say: Say | None) -> int:
    deadline = time.monotonic() + wait
    report_at = 0.0
    name_session(connection)
    while (backend := migration_lock.try_acquire(connection)) is None:
        now = time.monotonic()
        if now >= deadline:
            raise LockNotAcquired(
                f"The migration lock was not free within {wait:g} s; it is held by {_holder(connection)}.",
                mend="Wait until that migrator has ended, or give --lock-wait more seconds.",
            )
        if say is not None and now >= report_at:
            say(f"Waiting for the migration lock, held by {_holder(connection)}; {deadline - now:.0f} s left.")
            report_at = now + REPORT_S
        time.sleep(min(random.uniform(POLL_S / 2, POLL_S * 1.5), max(0.0, deadline - now)))  # noqa: S311
    return backend


def name_session(connection: BaseDatabaseWrapper) -> None:
    """Let waiting migrators and ``pg_stat_activity`` see which process this is."""
    migration_lock.name_session(connection, f"compute_migrate {socket.gethostname()}:{os.getpid()}"[:63])


def _holder(connection: BaseDatabaseWrapper) -> str:
    return str(migration_lock.holder(connection) or "a session that has just ended")


def _release_quietly(connection: BaseDatabaseWrapper) -> None:
    try:
        migration_lock.release(connection)
    except (DatabaseError, InterfaceError):
        # A broken connection has given the lock back by ending.
        connection.close()
