"""Database sessions of the worker runtime: the engine's own connections, and the handlers' guarded ones.

A handler's connection is persistent and read-only by ``default_transaction_read_only``, so that PostgreSQL
itself refuses a write outside ``ctx.sql.transaction()``; the fenced transaction says READ WRITE in its BEGIN.
Its timeouts bound how long a frozen holder can keep a lease from being taken.

A server that hangs, or is stopped, enforces no timeout. So every exchange with it has a deadline on this side too,
after which the connection is closed and the next use opens another.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

import psycopg
from django.db import connections
from django.db.backends.signals import connection_created
from psycopg import sql

from better_compute import conf
from better_compute.store import fence

#: For statements of the queue and of membership: the plans the indexes were made for, whatever the statistics say.
#: Before PostgreSQL 18 a sequential scan that is needed all the same counts as ruinously dear, so that a server with
#: JIT would spend seconds compiling a statement of milliseconds.
PLANNING: Final = {"enable_seqscan": "off", "plan_cache_mode": "force_generic_plan", "jit": "off"}

#: Longest that an exchange may take on a session that names no other time, in seconds.
PATIENCE_SECONDS: Final = 30.0

#: How long psycopg waits between two looks at whether it was interrupted.
_LOOK_SECONDS: Final = 0.1

#: Of a handler's thread: the alias, what its sessions set, and their patience. A context of its own, and not a variable
#: of the thread, so that what a run hands to ``asyncio.to_thread`` or ``sync_to_async`` is guarded too.
_guard: Final[ContextVar[tuple[str, dict[str, str], float] | None]] = ContextVar("compute_guard", default=None)


class Unanswered(psycopg.OperationalError):
    """The server answered nothing in time. Whether it did what it was asked is open; the connection is closed."""

    sqlstate = "08006"


def bound(connection: psycopg.Connection[Any], seconds: float) -> None:
    """Close ``connection`` when an exchange has had no answer for ``seconds``, and raise :class:`Unanswered`."""
    wait = connection.wait

    def bounded(gen: Any, interval: float = _LOOK_SECONDS, timeout: float | None = None) -> Any:
        if timeout is not None:
            # psycopg's own: it waits for notifications, and no answer is no failure.
            return wait(gen, interval, timeout)
        try:
            return wait(gen, interval, seconds)
        except psycopg.errors._WaitTimeout:
            connection.pgconn.finish()
            raise Unanswered(f"the server has not answered for {seconds:g} s; its connection was closed") from None

    connection.wait = bounded  # type: ignore[method-assign]


@contextmanager
def answering(connection: Any, seconds: float) -> Iterator[None]:
    """Give Django's ``connection`` a deadline inside: opening it, and every exchange, then end with an error."""
    given, mine = connection.get_connection_params, vars(connection).get("get_connection_params")
    connection.get_connection_params = lambda: {"connect_timeout": max(2, int(seconds)), **given()}
    try:
        connection.ensure_connection()
    finally:
        _restore(connection, "get_connection_params", mine)
    session = connection.connection
    mine = vars(session).get("wait")
    bound(session, seconds)
    try:
        yield
    finally:
        _restore(session, "wait", mine)


def _restore(owner: Any, name: str, mine: Any) -> None:
    """Give ``owner`` back the attribute of its own that it had, or its class's."""
    if mine is None:
        delattr(owner, name)
    else:
        setattr(owner, name, mine)


def connect(
    alias: str, name: str, settings: dict[str, str], patience: float = PATIENCE_SECONDS
) -> psycopg.Connection[Any]:
    """Open an autocommit connection of the engine's own to ``alias``.

    Parameters
    ----------
    name
        Shown as ``application_name`` in pg_stat_activity.
    settings
        Session settings, e.g. ``{"statement_timeout": "3s"}``; none are sent through a pooler, where they would stay
        behind for the next client.
    patience
        Seconds after which an exchange without an answer raises :class:`Unanswered`.
    """
    pooled = conf.current().worker.pooled
    params = _with_timeouts(connections[alias].get_connection_params())
    for key in ("context", "cursor_factory"):
        params.pop(key, None)
    threshold = connections[alias].settings_dict["OPTIONS"].get("prepare_threshold", 2)
    params["prepare_threshold"] = None if pooled else threshold
    params["application_name"] = name
    connection = psycopg.connect(**params, autocommit=True)
    bound(connection, patience)
    try:
        if not pooled:
            _configure(connection, settings)
    except BaseException:
        connection.close()
        raise
    return connection


def _with_timeouts(params: dict[str, Any]) -> dict[str, Any]:
    """``params`` with what finds a dead peer soon, and a standby at once, where the host set nothing else."""
    return {
        "connect_timeout": 3,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "target_session_attrs": "read-write",
        **params,
    }


def cut(connection: psycopg.Connection[Any]) -> None:
    """End a connection from another thread, so that whoever waits on it gets an error at once."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as peer:
        peer.shutdown(socket.SHUT_RDWR)


def terminate(cursor: Any, pid: int) -> None:
    """Have the server end the session of backend ``pid``, as a failover does, and wait up to 5 s until it is gone."""
    cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def guard_thread(alias: str, settings: dict[str, str], patience: float = PATIENCE_SECONDS) -> None:
    """Make Django's connection to ``alias`` on this thread read-only outside fenced transactions, reopened or not.

    ``patience`` is what an exchange may take in seconds: more than the ``statement_timeout`` among ``settings``.
    """
    _guard.set((alias, settings, patience))
    connection: Any = connections[alias]
    given = connection.get_connection_params
    connection.get_connection_params = lambda: _with_timeouts(given())
    if connection.connection is not None:
        connection.close()


def _on_created(*, connection: Any, **_: Any) -> None:
    guard = _guard.get()
    if guard is None or connection.alias != guard[0]:
        return
    bound(connection.connection, guard[2])
    if conf.current().worker.pooled:
        # Nothing of a session may be set, so every transaction says READ ONLY, and every statement is one.
        connection.connection.read_only = True
        setattr(connection, fence.LOCAL_SETTINGS, guard[1])
        setattr(connection, fence.READ_ONLY_SESSION, True)
        if _in_a_transaction not in connection.execute_wrappers:
            connection.execute_wrappers.append(_in_a_transaction)
    else:
        _configure(connection.connection, {**guard[1], "default_transaction_read_only": "on"})
        fence.prepare(connection.connection)
        setattr(connection, fence.READ_ONLY_SESSION, True)
        setattr(connection, fence.PREPARED, True)


def _in_a_transaction(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Mapping[str, Any]
) -> Any:
    connection = context["connection"]
    if connection.in_atomic_block or not connection.get_autocommit():
        return execute(sql, params, many, context)
    # Not atomic(), which would open one on the thread's connection to the alias: this one may be a copy of it.
    session = connection.connection
    connection.set_autocommit(False)
    try:
        answer = execute(sql, params, many, context)
        connection.commit()
    except BaseException:
        if not session.closed:
            connection.rollback()
        raise
    finally:
        if not session.closed:
            connection.set_autocommit(True)
    return answer


connection_created.connect(_on_created, dispatch_uid="better_compute.store.session")


def _configure(connection: psycopg.Connection[Any], settings: dict[str, str]) -> None:
    if settings:
        statements = [
            sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in settings.items()
        ]
        connection.execute(sql.SQL("; ").join(statements))


class Session:
    """One connection of the engine's own, used by one thread at a time, and reopened when it breaks."""

    def __init__(self, alias: str, name: str, settings: dict[str, str], patience: float = PATIENCE_SECONDS) -> None:
        self._alias = alias
        self._name = name
        self._settings = settings
        self._patience = patience
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None

    @contextmanager
    def cursor(self) -> Iterator[psycopg.Cursor[Any]]:
        """A cursor on the connection; one that breaks inside is closed, and the next use opens another.

        Raises
        ------
        psycopg.Error
            When the database cannot be reached, or a statement fails.
        """
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = connect(self._alias, self._name, self._settings, self._patience)
                with self._connection.cursor() as cursor:
                    yield cursor
            except psycopg.Error as error:
                if self._connection is not None and (self._connection.broken or is_lost(error)):
                    self.close()
                raise

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def is_lost(error: BaseException) -> bool:
    """Whether ``error`` says that the connection is of no more use: broken, shut down, or a standby's."""
    state = getattr(error, "sqlstate", None) or ""
    return state.startswith("08") or state in {"57P01", "57P02", "57P03", "25006"}
