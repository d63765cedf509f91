"""Which databases can hold compute's tables."""

from __future__ import annotations

from typing import Any

from django.db import OperationalError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from better_compute.ledger.errors import Refused, Unreachable

#: Oldest PostgreSQL, as ``server_version_num`` counts.
OLDEST_VERSION = 150000


def version_problem(version: int) -> str | None:
    """Say why a server of this ``server_version_num`` is refused, or return None."""
    if version >= OLDEST_VERSION:
        return None
    return f"PostgreSQL {version // 10000}.{version % 10000} is too old: Better Compute needs PostgreSQL 15 or later."


def keeps_ledger(using: str) -> bool:
    """Whether the host's routers let compute's tables into this database."""
    return bool(router.allow_migrate(using, "compute"))


def connect(using: str) -> BaseDatabaseWrapper:
    """The connection of alias ``using``, when it can hold compute's tables.

    Raises
    ------
    Refused
        One line: the alias is unknown, is not PostgreSQL, or its server is too old; Unreachable when it does not
        answer.
    """
    if using not in connections:
        raise Refused(
            f"Database {using!r} is not in DATABASES, which holds {', '.join(sorted(connections))}.",
            mend="Name one of these with --database or COMPUTE['MIGRATION_DATABASE'].",
        )
    connection: Any = connections[using]
    if connection.vendor != "postgresql":
        raise Refused(
            f"Database {using!r} is {connection.display_name}: Better Compute runs on PostgreSQL 15 or later only.",
            mend="Use PostgreSQL there, or keep compute's apps out of it with DATABASE_ROUTERS.",
        )
    try:
        connection.ensure_connection()
    except OperationalError as error:
        raise Unreachable(
            f"Database {using!r} cannot be reached: {' '.join(str(error).split())}",
            mend="Start the server, or correct HOST, PORT, USER and PASSWORD in DATABASES.",
        ) from error
    problem = version_problem(connection.pg_version)
    if problem:
        raise Refused(problem, mend=f"Upgrade the server of database {using!r}.")
    return connection  # type: ignore[no-any-return]
