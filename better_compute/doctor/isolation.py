"""The isolation that the server gives transactions by default."""

from __future__ import annotations

from collections.abc import Iterator

from better_compute.contract.findings import Finding
from better_compute.store import health


def check(using: str) -> Iterator[Finding]:
    """Anything but READ COMMITTED is an error: a lock would be followed by what was true before it."""
    found = health.isolation(using)
    if found != "read committed":
        yield Finding(
            check="database.isolation",
            severity="error",
            message=f"Transactions are {found.upper()} by default; fences and tenant states need READ COMMITTED.",
            fix="Set default_transaction_isolation to 'read committed' for the role and the database.",
        )
