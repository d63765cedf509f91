"""The isolation that the server gives transactions by default, and whether it is the one that is written to."""

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


def standby(using: str) -> Iterator[Finding]:
    """A standby is an error: it would answer queries with what was true a while ago, and refuse every change."""
    if health.is_standby(using):
        yield Finding(
            check="database.standby",
            severity="error",
            message=f"The database {using!r} is a standby; a query could miss what its caller has just written.",
            fix="Let COMPUTE['DATABASE'] be the primary; with several hosts add target_session_attrs=read-write.",
        )
