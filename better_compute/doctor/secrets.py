"""Whether every secret that sealed a value is still there."""

from __future__ import annotations

from collections.abc import Iterator

from better_compute.contract.findings import Finding
from better_compute.engine import keys, sealing
from better_compute.store import seal_keys


def missing(using: str) -> Iterator[Finding]:
    """Report secrets that sealed values and are not in ``COMPUTE["SECRET"]`` any more."""
    known = {key.id for key in keys.keys(sealing.PURPOSE)}
    gone = [id for id, _ in seal_keys.used(using) if id not in known]
    if not gone:
        return
    whole = "COMPUTE['SECRET'] is not set, and" if not known else "COMPUTE['SECRET'] lacks secrets that"
    yield Finding(
        check="secrets.missing",
        severity="error",
        message=f"{whole} {'values are sealed with' if not known else 'sealed values:'} {', '.join(gone)}.",
        fix="Put the earlier secrets back, behind the newest one; without them those values cannot be opened.",
        count=len(gone),
    )
