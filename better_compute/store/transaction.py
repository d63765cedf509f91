"""The one way the core opens a transaction: durable, with work flushed last and errors never swallowed.

Work enqueued inside is held back as ``on_commit`` markers of Django's connection, because Django drops
the markers of a savepoint that rolls back. Right before COMMIT what is left is written, sorted, in one
statement: row locks of hot keys are held for the shortest time and always taken in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import connections, transaction as django_transaction
from psycopg.pq import TransactionStatus

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.store import work

#: Called after commit with (kind, shard) of every key that was enqueued; the engine sets it to wake workers.
Wake = Callable[[str, int], None]
_wakes: Final[list[Wake]] = []

_OPEN: Final = "_compute_transaction_open"


def wake_with(wake: Wake) -> Callable[[], None]:
    """Register ``wake`` for keys committed from now on; returns what unregisters it."""
    _wakes.append(wake)
    return lambda: _wakes.remove(wake)


class _PendingWork:
    """An ``on_commit`` marker: rows to flush before COMMIT, and to wake workers for after it."""

    def __init__(self, rows: list[work.WorkRow]) -> None:
        self.rows = rows
        self.flushed = False

    def __call__(self) -> None:
        for kind, shard in sorted({(row.kind, row.shard) for row in self.rows}):
            for wake in _wakes:
                wake(kind, shard)


def is_open(using: str | None = None) -> bool:
    """Tell whether a transaction of ours is open on this thread's connection."""
    return bool(getattr(connections[using or conf.current().database], _OPEN, False))


def require_open(what: str, using: str | None = None) -> str:
    """Return the alias, or raise RuntimeError when no transaction is open on it (ruling 15)."""
    alias = using or conf.current().database
    if not connections[alias].in_atomic_block:
        raise RuntimeError(f"{what} needs an open transaction; use ctx.sql.transaction() around it.")
    return alias


def enqueue(rows: list[work.WorkRow], using: str | None = None) -> None:
    """Hold ``rows`` back until the transaction commits; in a plain Django transaction write them at once."""
    alias = require_open("ctx.work.enqueue", using)
    marker = _PendingWork(rows)
    if not is_open(alias):
        # Django has no hook before COMMIT, so in a host's own atomic() the rows cannot wait.
        _write([marker], alias)
    django_transaction.on_commit(marker, using=alias)


@contextmanager
def transaction(*, using: str | None = None, first: Callable[[], None] | None = None) -> Iterator[None]:
    """Open a durable transaction, or a savepoint when one of ours is open on this connection.

    Parameters
    ----------
    using
        Database alias; the compute database by default.
    first
        Runs as the first thing inside the outermost transaction (a fence, a preamble).

    Raises
    ------
    RuntimeError
        When the host has a transaction of its own open: nothing here could then promise a commit.
    ComputeError
        INTERNAL_ERROR when a statement failed inside and the error was swallowed.
    """
    alias = using or conf.current().database
    connection = connections[alias]
    if is_open(alias):
        with django_transaction.atomic(using=alias):
            yield
        return
    with django_transaction.atomic(using=alias, durable=True):
        setattr(connection, _OPEN, True)
        try:
            if first is not None:
                first()
            yield
            _refuse_error_state(connection)
            _write([marker for marker in _markers(connection) if not marker.flushed], alias)
        finally:
            setattr(connection, _OPEN, False)


def _markers(connection: Any) -> list[_PendingWork]:
    return [entry[1] for entry in connection.run_on_commit if isinstance(entry[1], _PendingWork)]


def _write(markers: list[_PendingWork], alias: str) -> None:
    rows = [row for marker in markers for row in marker.rows]
    if rows:
        with connections[alias].cursor() as cursor:
            work.upsert(cursor, rows)
    for marker in markers:
        marker.flushed = True


def _refuse_error_state(connection: Any) -> None:
    # PostgreSQL answers COMMIT of a failed transaction with a silent ROLLBACK.
    if connection.connection.info.transaction_status == TransactionStatus.INERROR:
        raise ComputeError(
            ErrorCode.INTERNAL_ERROR,
            "A statement failed and its error was swallowed, so nothing of this transaction can commit.",
            mend="Let the error through, or run the statement inside ctx.sql.transaction() to have a savepoint.",
        )
