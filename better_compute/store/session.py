"""Database sessions of the worker runtime: the engine's own connections, and the handlers' guarded ones.

A handler's connection is persistent and read-only by ``default_transaction_read_only``, so that PostgreSQL
itself refuses a write outside ``ctx.sql.transaction()``; the fenced transaction says READ WRITE in its BEGIN.
Its timeouts bound how long a frozen holder can keep a lease from being taken.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import Any, Final

import psycopg
from django.db import connections
from django.db.backends.signals import connection_created
from psycopg import sql

from better_compute.store.transaction import READ_ONLY_SESSION

#: For statements of the queue and of membership: the plans the indexes were made for, whatever the statistics say.
PLANNING: Final = {"enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}

_handler: Final = threading.local()


def connect(alias: str, name: str, settings: dict[str, str]) -> psycopg.Connection[Any]:
    """Open an autocommit connection of the engine's own to ``alias``.

    Parameters
    ----------
    name
        Shown as ``application_name`` in pg_stat_activity.
    settings
        Session settings, e.g. ``{"statement_timeout": "3s"}``.
    """
    params = connections[alias].get_connection_params()
    for key in ("context", "cursor_factory"):
        params.pop(key, None)
    params["prepare_threshold"] = connections[alias].settings_dict["OPTIONS"].get("prepare_threshold", 2)
    params["application_name"] = name
    params.setdefault("connect_timeout", 3)
    params.setdefault("keepalives_idle", 5)
    params.setdefault("keepalives_interval", 2)
    params.setdefault("keepalives_count", 3)
    params.setdefault("tcp_user_timeout", 10_000)
    params.setdefault("target_session_attrs", "read-write")
    connection = psycopg.connect(**params, autocommit=True)
    try:
        _configure(connection, settings)
    except BaseException:
        connection.close()
        raise
    return connection


def cut(connection: psycopg.Connection[Any]) -> None:
    """End a connection from another thread, so that whoever waits on it gets an error at once."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as peer:
        peer.shutdown(socket.SHUT_RDWR)


def guard_thread(alias: str, settings: dict[str, str]) -> None:
    """Make Django's connection to ``alias`` on this thread read-only outside fenced transactions, reopened or not."""
    _handler.guard = (alias, settings)
    connection = connections[alias]
    if connection.connection is not None:
        connection.close()


def _on_created(*, connection: Any, **_: Any) -> None:
    alias, settings = getattr(_handler, "guard", (None, {}))
    if connection.alias == alias:
        _configure(connection.connection, {**settings, "default_transaction_read_only": "on"})
        setattr(connection, READ_ONLY_SESSION, True)


connection_created.connect(_on_created, dispatch_uid="better_compute.store.session")


def _configure(connection: psycopg.Connection[Any], settings: dict[str, str]) -> None:
    if settings:
        statements = [
            sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in settings.items()
        ]
        connection.execute(sql.SQL("; ").join(statements))
