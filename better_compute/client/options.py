"""What a caller may ask of one call besides its input."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Asked of one call.

    Parameters
    ----------
    idempotency_key
        Of a mutation; a fresh one is made for each call, so that its own retries have their effect once.
    dry_run
        Make every check, answer, and keep nothing.
    request_id
        Names the call in the server's logs and records.
    timeout_s
        Seconds that one attempt may take; None leaves it to the client.
    """

    idempotency_key: str | None = None
    dry_run: bool = False
    request_id: str | None = None
    timeout_s: float | None = None
