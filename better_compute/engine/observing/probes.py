"""Whether this process is ready: each question answers None, or what is wrong. All are bounded."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from time import monotonic
from typing import Final

from django.db import Error as DatabaseProblem

from better_compute import conf, ledger
from better_compute.contract.errors import ComputeError
from better_compute.engine import runtime as worker
from better_compute.store import health, overview

#: How old an answer about pending migrations may be.
PENDING_SECONDS: Final = 2


def database() -> str | None:
    """The database answers within the statement timeout."""
    try:
        with overview.bounded():
            health.answer(conf.current().database)
    except DatabaseProblem as problem:
        return f"the database does not answer ({type(problem).__name__})"
    return None


def migrations() -> str | None:
    """Nothing is pending, as of at most :data:`PENDING_SECONDS` ago: anybody may ask, and reading migrations costs."""
    return _pending(int(monotonic() / PENDING_SECONDS))


@lru_cache(maxsize=1)
def _pending(look: int) -> str | None:
    try:
        pending = ledger.pending(conf.current().database)
    except (DatabaseProblem, ComputeError) as problem:
        return f"the ledger cannot be read ({type(problem).__name__})"
    return f"{len(pending)} migrations are pending; run manage.py compute_migrate" if pending else None


def heartbeat() -> str | None:
    """A worker trusts its leases; a process that is none has nothing to say."""
    stale = [each.role for runtime in worker.running for each in runtime.memberships if not each.trusted]
    return f"the heartbeat is too old in the roles {', '.join(stale)}" if stale else None


QUESTIONS: Final[dict[str, Callable[[], str | None]]] = {
    "database": database,
    "migrations": migrations,
    "heartbeat": heartbeat,
}


def problems() -> dict[str, str]:
    """What keeps this process from being ready, by question; empty when nothing does.

    The database is asked first: without it nothing else is.
    """
    found: dict[str, str] = {}
    for name, question in QUESTIONS.items():
        answer = question()
        if answer is not None:
            found[name] = answer
            if name == "database":
                break
    return found
