"""The one way the core opens a transaction: durable, with work flushed last and errors never swallowed.

Work enqueued inside is held back as ``on_commit`` markers of Django's connection, because Django drops
the markers of a savepoint that rolls back. Right before COMMIT what is left is written, sorted, in one
statement: row locks of hot keys are held for the shortest time and always taken in the same order. Statements that
nothing inside reads (:func:`at_end`) go out in the same message, before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.db import connections, transaction as django_transaction
from psycopg.pq import TransactionStatus

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.store import mark, opening, work
from better_compute.store.failures import trace_failure
from better_compute.store.fence import READ_ONLY_SESSION, Fence

#: Called after commit with (kind, shard) of every key that was enqueued; the engine sets it to wake workers.
Wake = Callable[[str, int], None]
_wakes: Final[list[Wake]] = []

#: Statements and wake-ups that one transaction holds back; further statements are sent as they come.
MOST_HELD: Final = 1_000

_OPEN: Final = "_compute_transaction_open"

log = logging.getLogger(__name__)


def wake_with(wake: Wake) -> Callable[[], None]:
    """Register ``wake`` for keys committed from now on; returns what unregisters it.

    ``wake`` runs on the committing thread, so it must only note the key and return.
    """
    _wakes.append(wake)
    return lambda: _wakes.remove(wake)


class _PendingWork:
    """An ``on_commit`` marker: rows to flush before COMMIT, and to wake workers for after it."""

    def __init__(self, rows: list[work.WorkRow], *, flushed: bool = False) -> None:
        self.rows = rows
        self.flushed = flushed

    def __call__(self) -> None:
        for kind, shard in sorted({(row.kind, row.shard) for row in self.rows}):
            for wake in tuple(_wakes):
                try:
                    wake(kind, shard)
                except Exception as error:
                    # The change is committed: a wake-up that fails costs a poll interval, never the answer.
                    log.error("waking workers for %s failed\n%s", kind, trace_failure(error))


@dataclass(slots=True)
class _HeldBack:
    """An ``on_commit`` marker: a statement to send before COMMIT, with its parameters."""

    statement: str
    params: Sequence[Any]
    sent: bool = False

    def __call__(self) -> None:
        """Nothing is left to do after COMMIT."""


def is_open(using: str | None = None) -> bool:
    """Tell whether a transaction of ours is open on this thread's connection."""
    return bool(getattr(connections[using or conf.current().database], _OPEN, False))


def require_open(what: str, using: str | None = None) -> str:
    """Return the alias, or raise RuntimeError when no transaction is open on it."""
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
        with connections[alias].cursor() as cursor:
            work.upsert(cursor, rows)
        marker.flushed = True
    django_transaction.on_commit(marker, using=alias)


def at_end(statement: str, params: Sequence[Any], using: str | None = None) -> None:
    """Send an INSERT that nothing inside reads in one message with COMMIT; in a plain Django transaction at once."""
    alias = require_open("A statement held back", using)
    connection = connections[alias]
    # What was sent inside a savepoint would be gone with it, although it was held back outside.
    if is_open(alias) and (len(connection.run_on_commit) < MOST_HELD or connection.savepoint_ids):
        django_transaction.on_commit(_HeldBack(statement, params), using=alias)
        return
    with connection.cursor() as cursor:
        _send_held_back(connection, cursor)
        cursor.execute(statement, params)


def requeue(kind: str, key: str, using: str | None = None) -> bool:
    """Make a queued key due now, whatever its backoff: an operator's "retry now". False when it is not queued."""
    alias = require_open("work.requeue", using)
    with connections[alias].cursor() as cursor:
        shard = work.requeue(cursor, kind, key)
    if shard is None:
        return False
    django_transaction.on_commit(_PendingWork([work.WorkRow(kind, key, shard)], flushed=True), using=alias)
    return True


def check_constraints(using: str | None = None) -> None:
    """Send what is held back and check deferred constraints now: how a dry run learns what a commit would say."""
    connection = connections[require_open("Checking constraints", using)]
    with connection.cursor() as cursor:
        mark.check(cursor)
        _send_held_back(connection, cursor)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


@contextmanager
def transaction(
    *,
    using: str | None = None,
    first: Callable[[], None] | None = None,
    fenced: bool = False,
    marked: bool = False,
) -> Iterator[None]:
    """Open a durable transaction, or a savepoint when one of ours is open on this connection.

    Parameters
    ----------
    using
        Database alias; the compute database by default.
    first
        Runs as the first thing inside the outermost transaction (a fence, a preamble). One that is not ``fenced`` runs
        once more where the session turns out to be dead.
    fenced
        ``first`` is a reconciler's fence: only then may a worker's session write.
    marked
        ``first`` leaves the mark by which the end tells that it is still the same transaction (``store.mark``), as
        every :class:`Fence` does.

    Raises
    ------
    RuntimeError
        When the host has a transaction of its own open, or has turned autocommit off: nothing here could
        then promise a commit.
    ComputeError
        INTERNAL_ERROR when a statement failed inside and the error was swallowed, or when something inside
        marked the transaction for rollback: it would otherwise roll back and look as if it had committed. Also
        when something inside ended the transaction: what came after it is undone.
    """
    alias = using or conf.current().database
    connection = connections[alias]
    if is_open(alias):
        with django_transaction.atomic(using=alias):
            yield
            _refuse_broken(connection)
        return
    if not connection.in_atomic_block and not connection.get_autocommit():
        raise RuntimeError(
            f"Autocommit is off on the database {alias!r}, so no transaction opened here would commit; "
            "turn it on, or call from outside of it."
        )
    outermost = not connection.in_atomic_block
    fence = first if fenced and outermost and isinstance(first, Fence) and first.opens(connection) else None
    begin = None if fence is None else partial(fence.open, connection)
    with _read_write(connection, fenced and fence is None), _begun(alias, begin or first, again=not fenced):
        setattr(connection, _OPEN, True)
        try:
            yield
            _refuse_broken(connection)
            _disarm(connection)
            _end(
                connection,
                marked=marked or isinstance(first, Fence),
                bare=fence is not None,
                commits=outermost and not getattr(connection.features, "uses_server_side_binding", False),
            )
        finally:
            setattr(connection, _OPEN, False)


@contextmanager
def _begun(alias: str, first: Callable[[], None] | None, *, again: bool) -> Iterator[None]:
    """Django's durable block with ``first`` done in it."""
    if first is not None and again and not connections[alias].in_atomic_block:
        with opening.opened(alias, first):
            yield
        return
    with django_transaction.atomic(using=alias, durable=True):
        if first is not None:
            first()
        yield


@contextmanager
def _read_write(connection: Any, fenced: bool) -> Iterator[None]:
    """Let a fenced transaction write although its session is read-only: it costs no statement, BEGIN says it."""
    if not fenced or not getattr(connection, READ_ONLY_SESSION, False) or connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    session = connection.connection
    before = session.read_only
    session.read_only = False
    try:
        yield
    finally:
        if not session.closed:
            session.read_only = before


def _disarm(connection: Any) -> None:
    """Let no callback that raises after COMMIT make a failure of what is committed: Django logs it instead."""
    connection.run_on_commit = [(sids, callback, True) for sids, callback, _ in connection.run_on_commit]


def _held_back(connection: Any) -> list[_HeldBack]:
    entries = (entry[1] for entry in connection.run_on_commit)
    return [entry for entry in entries if isinstance(entry, _HeldBack) and not entry.sent]


def _send_held_back(connection: Any, cursor: Any) -> None:
    for held in _held_back(connection):
        cursor.execute(held.statement, held.params)
        held.sent = True


def _end(connection: Any, *, marked: bool, commits: bool, bare: bool) -> None:
    """Check the mark and send what is held back, with ``commits`` in one message with COMMIT.

    Django then finds the COMMIT done. A hot key's row stays locked until then, so each moment in between is one
    that every other writer waits. ``bare``: what began past Django's cursor ends past it too, if nothing is held back.
    """
    held = _held_back(connection)
    entries = [entry[1] for entry in connection.run_on_commit]
    markers = [entry for entry in entries if isinstance(entry, _PendingWork) and not entry.flushed]
    statements = [(each.statement, each.params) for each in held]
    rows = [row for marker in markers for row in marker.rows]
    if rows:
        statements.append(work.upserting(rows))
    if bare and not statements:
        mark.commit(connection)
        return
    if marked:
        statements.insert(0, (mark.CHECK, ()))
    if statements:
        with connection.cursor() as cursor, mark.told():
            _send(connection, cursor, statements, commits=commits)
    for entry in held:
        entry.sent = True
    for marker in markers:
        marker.flushed = True


def _send(connection: Any, cursor: Any, statements: list[tuple[str, Sequence[Any]]], *, commits: bool) -> None:
    if not commits:
        # Values that the server binds allow one statement a message.
        for statement, params in statements:
            cursor.execute(statement, params or None)
        return
    with opening.begun_with(connection) as begin:
        text = "; ".join(statement for statement, _ in statements)
        cursor.execute(f"{begin}{text}; COMMIT", [value for _, params in statements for value in params] or None)


def _refuse_broken(connection: Any) -> None:
    # PostgreSQL answers COMMIT of a failed transaction with a silent ROLLBACK, and Django leaves a block
    # that is marked for rollback without an exception.
    session = connection.connection
    if session is None or session.closed:
        raise ComputeError(
            ErrorCode.INTERNAL_ERROR,
            "The connection was closed inside the transaction, so nothing of it can commit.",
            mend="Do not close connections inside ctx.sql.transaction().",
        )
    if session.info.transaction_status == TransactionStatus.INERROR or connection.needs_rollback:
        raise ComputeError(
            ErrorCode.INTERNAL_ERROR,
            "A statement failed and its error was swallowed, so nothing of this transaction can commit.",
            mend="Let the error through, or run the statement inside ctx.sql.transaction() to have a savepoint.",
        )
