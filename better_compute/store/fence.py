"""The fence of a run: what makes its transactions ones that can commit only under its leases.

On a handler's connection the fence travels with BEGIN in one round trip, and its plan is kept by the session: it
then costs less than a statement of its own would cost to send. Elsewhere it is the first statement of the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import connections
from psycopg import sql

from better_compute import conf
from better_compute.contract.contexts import LeaseInfo
from better_compute.contract.errors import LeaseLost
from better_compute.store import arrays, mark, message

#: Set on a connection whose session is read-only outside fenced transactions (``store.session``).
READ_ONLY_SESSION: Final = "_compute_read_only_session"
#: Set on a connection whose session has prepared the fence.
PREPARED: Final = "_compute_fence_prepared"

#: On a connection through a pooler: what a fenced transaction sets for itself, by name.
LOCAL_SETTINGS: Final = "_compute_local_settings"

# KEY SHARE: renewing the member never waits for it, taking the lease always does.
ONE: Final = """
SELECT 1 FROM compute_leases lease JOIN compute_workers member ON member.id = lease.holder
WHERE lease.name = %s AND lease.holder = %s AND lease.epoch = %s AND member.expires_at > compute_now()
FOR KEY SHARE OF lease
"""

# Several leases at once, for run_many: one row each, locked in name order.
ALL: Final = """
SELECT 1 FROM unnest(%(names)s::text[], %(holders)s::text[], %(epochs)s::bigint[]) AS wanted (name, holder, epoch)
JOIN compute_leases lease
  ON lease.name = wanted.name AND lease.holder = wanted.holder AND lease.epoch = wanted.epoch
JOIN compute_workers member ON member.id = lease.holder
WHERE member.expires_at > (SELECT compute_now())
ORDER BY lease.name
FOR KEY SHARE OF lease
"""

_NAME: Final = "compute_fence"
_PREPARE: Final = f"PREPARE {_NAME} (text, text, bigint) AS {ONE.replace('%s', '${}').format(1, 2, 3)}"


def prepare(session: Any) -> None:
    """Have a new session keep the plan of the fence; not for one that a pooler shares between clients."""
    session.execute(_PREPARE)


def require(cursor: Any, lease: LeaseInfo) -> None:
    """Make the open transaction one that can commit only under ``lease``.

    Raises
    ------
    LeaseLost
        When the lease has another holder or epoch, or the member's time is over.
    """
    cursor.execute(ONE, [lease.name, lease.holder, lease.epoch])
    if cursor.fetchone() is None:
        raise _lost([lease])


def require_all(cursor: Any, wanted: Sequence[LeaseInfo]) -> None:
    """Fence several leases: :class:`LeaseLost` when one of them is gone."""
    if len(wanted) == 1:
        require(cursor, wanted[0])
        return
    cursor.execute(ALL, _columns(wanted))
    if len(cursor.fetchall()) != len(wanted):
        raise _lost(wanted)


def _all_of(wanted: Sequence[LeaseInfo]) -> sql.Composable:
    """The statement that fences several leases, with its values in it; it returns a row for each that is held."""
    text = ALL.replace("%(", "{").replace(")s", "}")
    return sql.SQL(text).format(**{name: sql.Literal(values) for name, values in _columns(wanted).items()})


def _lost(wanted: Sequence[LeaseInfo]) -> LeaseLost:
    """What a fence of ``wanted`` raises when one of them is gone."""
    first = wanted[0]
    if len(wanted) == 1:
        return LeaseLost(f"{first.name} at epoch {first.epoch} is no longer held by {first.holder}.")
    return LeaseLost(f"One of {len(wanted)} leases, {first.name} and others, is no longer held.")


def _columns(wanted: Sequence[LeaseInfo]) -> dict[str, str]:
    return {
        "names": arrays.texts([lease.name for lease in wanted]),
        "holders": arrays.texts([lease.holder for lease in wanted]),
        "epochs": arrays.integers([lease.epoch for lease in wanted]),
    }


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
            require_all(cursor, self.held)

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
        if message.exchange(connection, self._opening[prepared]).ntuples != len(self.held):
            raise _lost(self.held)

    def _statement(self, prepared: bool, local: Mapping[str, str]) -> sql.Composable:
        begin: sql.Composable = sql.SQL(f"BEGIN READ WRITE; {mark.SET_LOCAL}; ")
        for name, value in local.items():
            begin += sql.SQL("SET LOCAL {} = {}; ").format(sql.Identifier(name), sql.Literal(value))
        if len(self.held) > 1:
            return begin + _all_of(self.held)
        [lease] = self.held
        values = [sql.Literal(lease.name), sql.Literal(lease.holder), sql.Literal(lease.epoch)]
        if prepared:
            return begin + sql.SQL("EXECUTE {} ({})").format(sql.Identifier(_NAME), sql.SQL(", ").join(values))
        return begin + sql.SQL(ONE.replace("%s", "{}")).format(*values)
