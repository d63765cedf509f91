"""The lives of grants and tokens, as data. Both are told from their times, so that no job has to move them on."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

from better_compute import StateTable


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


GRANT: Final = StateTable[State, Verb](
    what="grant",
    initial={State.PENDING, State.ACTIVE},
    transitions={
        (State.PENDING, Verb.START): State.ACTIVE,
        (State.PENDING, Verb.REVOKE): State.REVOKED,
        (State.ACTIVE, Verb.END): State.EXPIRED,
        (State.ACTIVE, Verb.REVOKE): State.REVOKED,
    },
    by_itself={Verb.START, Verb.END},
    mends=dict.fromkeys((State.EXPIRED, State.REVOKED), "Create another one."),
)

TOKEN: Final = StateTable[State, Verb](
    what="token",
    initial={State.ACTIVE},
    transitions={
        (State.ACTIVE, Verb.END): State.EXPIRED,
        (State.ACTIVE, Verb.REVOKE): State.REVOKED,
        # The old one: at once, or when its grace is over.
        (State.ACTIVE, Verb.ROTATE): State.EXPIRED,
    },
    by_itself={Verb.END},
    mends=dict.fromkeys((State.EXPIRED, State.REVOKED), "Create another one."),
)


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
