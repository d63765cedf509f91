"""The life of a tenant, as data: checks, refusals and the docs' picture come from this table."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import timedelta
from enum import StrEnum
from typing import Final, Literal

from better_compute import ComputeError, ErrorCode, StateTable


class State(StrEnum):
    """A tenant that no row speaks of is active."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETING = "deleting"
    TORN_DOWN = "torn_down"


class Verb(StrEnum):
    """What changes a state. ``finish`` is the reconciler's, the others are methods."""

    SUSPEND = "suspend"
    RESUME = "resume"
    DELETE = "delete"
    FINISH = "finish"


#: A teardown older than this is reported with its blockers.
TEARDOWN_DEADLINE: Final = timedelta(hours=1)

#: The states are the reasons of what a call meets, too: TENANT_SUSPENDED, TENANT_DELETING, TENANT_TORN_DOWN.
TABLE: Final = StateTable[State, Verb](
    what="tenant",
    initial={State.ACTIVE},
    transitions={
        (State.ACTIVE, Verb.SUSPEND): State.SUSPENDED,
        (State.SUSPENDED, Verb.RESUME): State.ACTIVE,
        (State.ACTIVE, Verb.DELETE): State.DELETING,
        (State.SUSPENDED, Verb.DELETE): State.DELETING,
        (State.DELETING, Verb.FINISH): State.TORN_DOWN,
    },
    by_itself={Verb.FINISH},
    mends={
        State.SUSPENDED: "Ask whoever suspended it to call tenants.resume; reads are allowed meanwhile.",
        State.DELETING: "tenants.deletionStatus tells how far its teardown is and what blocks it.",
        State.TORN_DOWN: "It is gone for good; use another tenant.",
    },
)


def admits(state: State, kind: Literal["mutation", "query"], also_while: AbstractSet[str]) -> bool:
    """Whether a call of this kind may go on for a tenant in ``state``."""
    if state is State.ACTIVE or state.value in also_while:
        return True
    return state is State.SUSPENDED and kind == "query"


def refusal(tenant_id: str, state: State, why: str, *, asked_for: str) -> ComputeError:
    """The error of a call that ``state`` does not admit; ``asked_for`` is the tenant that the call concerns."""
    above = "" if tenant_id == asked_for else f", which stands above {asked_for!r},"
    said = f": {why}" if why else ""
    return ComputeError(
        ErrorCode.INVALID_STATE,
        f"The tenant {tenant_id!r}{above} is {state}{said}.",
        mend=TABLE.mends[state],
        reason=TABLE.reason(state),
    )
