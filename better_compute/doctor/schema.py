"""Whether the database can be reached and is up to date."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections
from django.db.utils import InterfaceError

from better_compute import ledger
from better_compute.contract.errors import ComputeError
from better_compute.contract.findings import Finding
from better_compute.store import failures, health

MIGRATE = "manage.py compute_migrate"
#: Most pending migrations that a finding names.
_NAMED = 5


def unreachable(using: str) -> Finding | None:
    """Say that the database cannot be reached, or return None."""
    try:
        connections[using].ensure_connection()
    except (DatabaseError, InterfaceError, ImproperlyConfigured) as failure:
        return Finding(
            check="database.unreachable",
            severity="error",
            message=f"Database {using!r} cannot be reached. {failures.describe_failure(failure)}",
            fix=f"Start PostgreSQL or correct DATABASES[{using!r}], then run `{MIGRATE}`.",
        )
    return None


def pending(using: str) -> tuple[list[str], list[Finding]]:
    """The migrations that are not applied, and the finding that says so."""
    try:
        with health.reading(using):
            waiting = ledger.pending(using)
    except ComputeError as refusal:
        return [], [
            Finding(
                check="migrations.refused",
                severity="error",
                message=refusal.message,
                fix=refusal.mend or f"Run `{MIGRATE} --check`; it names what to correct.",
            )
        ]
    except DatabaseError as failure:
        return [], [
            Finding(
                check="migrations.unreadable",
                severity="error",
                message=f"The migrations of database {using!r} cannot be read. {failures.describe_failure(failure)}",
                fix=f"Run `{MIGRATE}` as the owner; it grants COMPUTE['APP_ROLE'] what it needs.",
            )
        ]
    return waiting, [_finding(waiting)] if waiting else []


def _finding(waiting: Sequence[str]) -> Finding:
    more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    one = len(waiting) == 1
    return Finding(
        check="migrations.pending",
        severity="error",
        message=f"{len(waiting)} migration{' is' if one else 's are'} pending: {', '.join(waiting[:_NAMED])}{more}.",
        fix=f"Run `{MIGRATE}`.",
        count=len(waiting),
    )
