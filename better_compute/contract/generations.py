"""Optimistic preconditions: a write carries the generation that its writer read."""

from __future__ import annotations

from better_compute.contract.errors import ComputeError, ErrorCode


def require_generation(what: str, *, given: int | None, stored: int | None) -> None:
    """Refuse a write that was made on something else than what stands.

    Parameters
    ----------
    what
        Names the record to the caller: ``"pool 'p1'"``.
    given
        The generation that the caller read; None says that the record must not exist yet.
    stored
        The generation that stands, read with the row's lock held; None when there is no such record.

    Raises
    ------
    ComputeError
        GENERATION_MISMATCH naming both.
    """
    if given == stored:
        return
    stands = "does not exist" if stored is None else f"is at generation {stored}"
    expected = "to be new" if given is None else f"at generation {given}"
    raise ComputeError(
        ErrorCode.GENERATION_MISMATCH,
        f"The {what} {stands}, and the call expects it {expected}.",
        mend="Read it again, decide again, and send the generation you read.",
    )
