"""The lives of grants and tokens, as data. Both are told from their times, so that no job has to move them on."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from better_compute import ComputeError, ErrorCode


class State(StrEnum):
    """Of a grant or a token; a token is never pending."""

    PENDING = "pending"
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class Verb(StrEnum):
    """What a caller can do. ``start`` and ``end`` come with time."""

    START = "start"
    END = "end"
    REVOKE = "revoke"
    ROTATE = "rotate"


TRANSITIONS: Final[dict[tuple[State, Verb], State]] = {
    (State.PENDING, Verb.START): State.ACTIVE,
    (State.PENDING, Verb.REVOKE): State.REVOKED,
    (State.ACTIVE, Verb.END): State.EXPIRED,
    (State.ACTIVE, Verb.REVOKE): State.REVOKED,
    (State.ACTIVE, Verb.ROTATE): State.EXPIRED,
}


class Lived(Protocol):
    """What has these times; missing ones are None."""

    @property
    def starts_at(self) -> datetime | None: ...
    @property
    def expires_at(self) -> datetime | None: ...
    @property
    def revoked_at(self) -> datetime | None: ...


def state_of(
    now: datetime, *, starts_at: datetime | None, expires_at: datetime | None, revoked_at: datetime | None
) -> State:
    """The state at ``now``; a grant ends at its very end, and what is revoked stays so."""
    if revoked_at is not None:
        return State.REVOKED
    if expires_at is not None and expires_at <= now:
        return State.EXPIRED
    if starts_at is not None and starts_at > now:
        return State.PENDING
    return State.ACTIVE


def require(what: str, id: Any, state: State, verb: Verb) -> State:
    """The state that ``verb`` leads to.

    Raises
    ------
    ComputeError
        INVALID_STATE listing the verbs that are legal instead.
    """
    target = TRANSITIONS.get((state, verb))
    if target is None:
        by_time = (Verb.START, Verb.END)
        legal = [each.value for (source, each) in TRANSITIONS if source is state and each not in by_time]
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The {what} {id} is {state}, so it cannot {verb}.",
            mend=f"Legal now: {', '.join(legal)}." if legal else "No verb is legal now; create another one.",
            reason=f"{what.upper()}_{state.value.upper()}",
        )
    return target
