"""A database's refusal as a finding, so that a broken part of a page never breaks the page."""

from __future__ import annotations

from typing import Final

from django.db import DatabaseError

from better_compute.contract.findings import Finding
from better_compute.store.overview import STATEMENT_TIMEOUT_MS

_MIGRATE: Final = "Run manage.py compute_migrate as the owner role."
#: SQLSTATE of what an operator can meet, and what to say: message, mend.
_KNOWN: Final = {
    "42P01": ("A table is missing: {}.", _MIGRATE),
    "42703": ("A column is missing: {}.", _MIGRATE),
    "42883": ("A function is missing: {}.", _MIGRATE),
    "42501": (
        "The database role that serves may not read this: {}.",
        f"{_MIGRATE} It grants the app role what it needs.",
    ),
    "57014": (
        f"Reading this took longer than {STATEMENT_TIMEOUT_MS // 1000} s and was stopped: {{}}.",
        "Choose a filter, or try again when the database is less busy.",
    ),
}


def finding_of(check: str, error: Exception) -> Finding:
    """The finding for an error met while reading."""
    detail = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
    cause = error.__cause__ if isinstance(error, DatabaseError) else None
    message, fix = _KNOWN.get(
        getattr(cause, "sqlstate", None) or "",
        ("This part could not be read: {}.", "See the server's log, then run manage.py doctor."),
    )
    return Finding(check=check, severity="error", message=message.format(detail), fix=fix)
