"""The fence of a run: what makes its transactions ones that can commit only under its leases.

On a handler's connection the fence travels with BEGIN in one round trip, and its plan is kept by the session: it
then costs less than a statement of its own would cost to send. Elsewhere it is the first statement of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import connections
from psycopg import errors, generators, sql
from psycopg.pq import ExecStatus

from better_compute import conf
from better_compute.contract.ports import LeaseInfo
from better_compute.store import leases, mark

#: Set on a connection whose session is read-only outside fenced transactions (``store.session``).
READ_ONLY_SESSION: Final = "_compute_read_only_session"
#: Set on a connection whose session has prepared the fence.
PREPARED: Final = "_compute_fence_prepared"

#: On a connection through a pooler: what a fenced transaction sets for itself, by name.
LOCAL_SETTINGS: Final = "_compute_local_settings"

_NAME: Final = "compute_fence"
_PREPARE: Final = f"PREPARE {_NAME} (text, text, bigint) AS {leases.FENCE.replace('%s', '${}').format(1, 2, 3)}"


def prepare(session: Any) -> None:
    """Have a new session keep the plan of the fence; not for one that a pooler shares between clients."""
    session.execute(_PREPARE)


class Fence:
    """The fence of runs under ``held``."""

    def __init__(self, held: Sequence[LeaseInfo]) -> None:
        self.held = held
        #: By whether the session has it prepared, BEGIN and the fence as they are sent.
        self._opening: dict[bool, bytes] = {}

    def __call__(self) -> None:
        """Fence the transaction that is open.

        Raises
        ------
        LeaseLost
            When one of the leases is gone, or the member's time is over.
        """
        with connections[conf.current().database].cursor() as cursor:
            cursor.execute(mark.SET_LOCAL)
            leases.fence_all(cursor, self.held)

    def opens(self, connection: Any) -> bool:
        """Whether :meth:`open` can begin the transaction of a Django connection that is about to begin one."""
        connection.ensure_connection()
        session = connection.connection
        return (
            bool(getattr(connection, READ_ONLY_SESSION, False))
            and session.isolation_level is None
            and session.deferrable is None
        )

    def open(self, connection: Any) -> None:
        """Begin the transaction and fence it, in one round trip; raises like a call."""
        session = connection.connection
        prepared = bool(getattr(connection, PREPARED, False)) and len(self.held) == 1
        if prepared not in self._opening:
            local = getattr(connection, LOCAL_SETTINGS, {})
            self._opening[prepared] = self._statement(prepared, local).as_bytes(session)
        with connection.wrap_database_errors:
            with session.lock:
                session.pgconn.send_query(self._opening[prepared])
                # Through the connection's own wait, which has a deadline (``store.session``).
                result = session.wait(generators.execute(session.pgconn))[-1]
            if result.status != ExecStatus.TUPLES_OK:
                raise errors.error_from_result(result, encoding=session.info.encoding)
        if result.ntuples != len(self.held):
            raise leases.lost(self.held)

    def _statement(self, prepared: bool, local: Mapping[str, str]) -> sql.Composable:
        begin: sql.Composable = sql.SQL(f"BEGIN READ WRITE; {mark.SET_LOCAL}; ")
        for name, value in local.items():
            begin += sql.SQL("SET LOCAL {} = {}; ").format(sql.Identifier(name), sql.Literal(value))
        if len(self.held) > 1:
            return begin + leases.fence_all_of(self.held)
        [lease] = self.held
        values = [sql.Literal(lease.name), sql.Literal(lease.holder), sql.Literal(lease.epoch)]
        if prepared:
            return begin + sql.SQL("EXECUTE {} ({})").format(sql.Identifier(_NAME), sql.SQL(", ").join(values))
        return begin + sql.SQL(leases.FENCE.replace("%s", "{}")).format(*values)
