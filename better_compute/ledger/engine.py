"""Which databases can hold compute's tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, NotSupportedError, OperationalError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from better_compute.ledger.errors import Refused, Unreachable
from better_compute.store.failures import dependents, describe_failure

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
    except NotSupportedError as error:
        # Django's own bound, which may lie above ours.
        raise Refused(f"{error}.", mend=f"Upgrade the server of database {using!r}.") from error
    except ImproperlyConfigured as error:
        raise Refused(
            f"Database {using!r}: {' '.join(str(error).split())}",
            mend="Correct the settings; a variable of the environment that they read may be empty.",
        ) from error
    except OperationalError as error:
        raise Unreachable(
            f"Database {using!r} cannot be reached: {' '.join(str(error).split())}",
            mend="Start the server, or correct NAME, HOST, PORT, USER and PASSWORD in DATABASES.",
        ) from error
    problem = version_problem(connection.pg_version)
    if problem:
        raise Refused(problem, mend=f"Upgrade the server of database {using!r}.")
    encoding = connection.connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise Refused(
            f"Database {using!r} is encoded in {encoding}: keys and texts may be of any script.",
            mend="Make it with ENCODING 'UTF8', from template0, and move what it holds.",
        )
    return connection  # type: ignore[no-any-return]


#: SQLSTATE to what mends it.
_MENDS: Final = {
    "42501": "Run it as the role that owns the tables (COMPUTE['MIGRATION_DATABASE']), or grant it what it lacks.",
    "25006": "Run it on the primary, as a role whose default_transaction_read_only is off.",
    "3F000": "Create the schema, or let the role's search_path name one that is there.",
    "42703": "A table of that name is another program's: rename it, or migrate into another schema or database.",
}


@contextmanager
def refusing(using: str) -> Iterator[None]:
    """Turn what the database says outside of a migration into a refusal: a right, a schema or a setting is missing.

    Raises
    ------
    Refused
        One line with PostgreSQL's own sentence; Unreachable when the connection was lost.
    """
    try:
        yield
    except DatabaseError as error:
        said = _first(error)
        state = getattr(said, "sqlstate", None)
        if state is None and isinstance(error, OperationalError):
            raise Unreachable(
                f"Database {using!r} was lost: {describe_failure(said)}.",
                mend="Run it again; the ledger knows what is done.",
            ) from error
        raise Refused(
            f"Database {using!r} refuses: {describe_failure(said)}.",
            mend=f"Nothing of it is gone. Drop what stands on it first: {others}."
            if (others := dependents(said)) is not None
            else _MENDS.get(str(state), "Correct the database, the role or its settings, and run it again."),
        ) from error


def _first(error: BaseException) -> BaseException:
    """The driver's error at the bottom, which Django may have told in words of its own."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return error
