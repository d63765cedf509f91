"""A message sent past Django's cursor, whose wrappers and parsing cost more than such a message costs the server.

For what the core says on its own account around a reconciler's transaction: how it begins and how it ends. A handler's
statements take Django's way, where a host's ``execute_wrapper`` and debug log see them.
"""

from __future__ import annotations

from typing import Any

from psycopg import errors, generators
from psycopg.pq import ExecStatus


def exchange(connection: Any, message: bytes) -> Any:
    """Send statements without parameters on an open Django connection; returns the last one's ``PGresult``.

    Raises
    ------
    django.db.Error
        When one of them fails; PostgreSQL then runs none of those behind it.
    """
    session = connection.connection
    with connection.wrap_database_errors:
        with session.lock:
            session.pgconn.send_query(message)
            # Through the connection's own wait, which has a deadline (``store.session``).
            result = session.wait(generators.execute(session.pgconn))[-1]
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise errors.error_from_result(result, encoding=session.info.encoding)
    return result
