"""What the core or the database refuses, as the one line that a command ends with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError

from better_compute.contract.errors import ComputeError
from better_compute.devtools import running
from better_compute.store.failures import NOT_MIGRATED, describe_failure

#: Exit code of a command that could not begin, as argparse has it.
REFUSED: Final = 2

_MIGRATE: Final = "Run `manage.py compute_migrate` as the owner role."
_CONNECT: Final = "Start PostgreSQL, or correct DATABASES in the settings."
_CONFIGURE: Final = "Correct the settings; a variable of the environment that they read may be empty."
#: SQLSTATE, or its class, of what an operator can mend; any other error of the database is a defect.
_MENDS: Final = {
    **dict.fromkeys(NOT_MIGRATED, _MIGRATE),
    "42501": "Run it as a role that may, or let `manage.py compute_migrate` grant the app role what it needs.",
    "25006": "Run it against the primary.",
    "08": _CONNECT,
    "28": _CONNECT,
    "3D": _CONNECT,
    "53": "Try again when the server has room.",
    "57": "Try again when the server is less busy, or up again.",
}


@contextmanager
def told(*, away: int = REFUSED) -> Iterator[None]:
    """Let a command end with what was refused and its mend instead of a traceback; also a decorator of ``handle``.

    Of the database's errors those are told that the operator can mend: a table that is not there yet, a server that
    does not answer. ``away`` is the exit code of those.
    """
    try:
        yield
    except ComputeError as refusal:
        # Those of the ledger have an exit code each.
        raise CommandError(str(refusal), returncode=getattr(refusal, "exit_code", REFUSED)) from refusal
    except (DatabaseError, InterfaceError) as failure:
        mend = _mend(failure)
        if mend is None:
            raise
        if mend is _CONNECT and running.starting is not None:
            mend = f"{running.starting}."
        raise CommandError(f"{describe_failure(failure)}. {mend}", returncode=away) from failure
    except ImproperlyConfigured as failure:
        said = " ".join(str(failure).split()).rstrip(".")
        raise CommandError(f"{said}. {_CONFIGURE}", returncode=REFUSED) from failure


def _mend(failure: BaseException) -> str | None:
    cause = failure.__cause__
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # libpq's own, e.g. that nothing listens; what psycopg refuses to send is a defect.
        return _CONNECT if isinstance(cause, psycopg.OperationalError) else None
    return _MENDS.get(state, _MENDS.get(state[:2]))
