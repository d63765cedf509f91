"""The first message of a transaction: BEGIN goes out with its first statement, and finds out whether the session lives.

Two round trips less for a call: BEGIN would be one of its own, and so would the ping of ``CONN_HEALTH_CHECKS``. Nothing
has been done yet when the first message fails, so on a session that died while it lay idle it is sent once more, on
another session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import InterfaceError, OperationalError, connections
from django.db.transaction import Atomic
from psycopg.pq import TransactionStatus


def fetch_first(alias: str, statement: str, params: Sequence[Any], *, within_ms: int = 0) -> Any:
    """The one row that a statement answers; the transaction begins with it where it has not begun yet.

    ``within_ms`` bounds it and all that follow: a limit that a statement sets itself counts only from the next one on.
    Values that the server binds allow no second statement beside it, so there nothing is bounded.
    """
    connection = connections[alias]
    bound = ""
    if within_ms and not getattr(connection.features, "uses_server_side_binding", False):
        bound = f"SET LOCAL statement_timeout = {within_ms:d}; "
    with connection.cursor() as cursor, begun_with(connection) as begin:
        cursor.execute(f"{begin}{bound}{statement}", params)
        for ahead in (begin, bound):
            if ahead:
                cursor.nextset()
        return cursor.fetchone()


@contextmanager
def begun_with(connection: Any) -> Iterator[str]:
    """What the next statement begins with, so that it begins the transaction too; empty where psycopg does that."""
    session = connection.connection
    if not _waits_for_begin(connection, session):
        yield ""
        return
    # Or psycopg would send a BEGIN of its own ahead. Its property cannot be set back inside a transaction.
    session._autocommit = True
    try:
        yield "BEGIN; "
    finally:
        session._autocommit = False


def _waits_for_begin(connection: Any, session: Any) -> bool:
    return (
        session is not None
        and connection.in_atomic_block
        and not session.autocommit
        and not getattr(connection.features, "uses_server_side_binding", False)
        # What BEGIN would have to say besides.
        and (session.isolation_level, session.read_only, session.deferrable) == (None, None, None)
        and session.info.transaction_status == TransactionStatus.IDLE
    )


@contextmanager
def opened(alias: str, first: Callable[[], None]) -> Iterator[None]:
    """Django's durable block with ``first`` inside, which sends the first message and does nothing before it."""
    connection: Any = connections[alias]
    connection.ensure_connection()
    session = connection.connection
    connection.health_check_done = True
    try:
        block = _entered(alias, first)
    except (OperationalError, InterfaceError):
        if session is None or not session.closed:
            raise
        block = _entered(alias, first)
    with ExitStack() as stack:
        stack.push(block)
        yield


def _entered(alias: str, first: Callable[[], None]) -> Atomic:
    block = Atomic(alias, savepoint=True, durable=True)
    block.__enter__()
    try:
        first()
    except BaseException as error:
        block.__exit__(type(error), error, error.__traceback__)
        raise
    return block
