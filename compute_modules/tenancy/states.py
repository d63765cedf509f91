"""The life of a tenant, as data: checks, refusals and the docs' picture come from these tables."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import timedelta
from enum import StrEnum
from typing import Final, Literal

from better_compute import ComputeError, ErrorCode


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


#: (state, verb) -> the state it leads to. Whatever is not listed is illegal.
TRANSITIONS: Final[dict[tuple[State, Verb], State]] = {
    (State.ACTIVE, Verb.SUSPEND): State.SUSPENDED,
    (State.SUSPENDED, Verb.RESUME): State.ACTIVE,
    (State.ACTIVE, Verb.DELETE): State.DELETING,
    (State.SUSPENDED, Verb.DELETE): State.DELETING,
    (State.DELETING, Verb.FINISH): State.TORN_DOWN,
}

#: ``reason`` of the INVALID_STATE that a call meets in this state.
REFUSAL: Final[dict[State, str]] = {
    State.SUSPENDED: "TENANT_SUSPENDED",
    State.DELETING: "TENANT_DELETING",
    State.TORN_DOWN: "TENANT_TORN_DOWN",
}

_MEND: Final[dict[State, str]] = {
    State.SUSPENDED: "Ask whoever suspended it to call tenants.resume; reads are allowed meanwhile.",
    State.DELETING: "tenants.deletionStatus tells how far its teardown is and what blocks it.",
    State.TORN_DOWN: "It is gone for good; use another tenant.",
}

#: A teardown older than this is reported with its blockers.
TEARDOWN_DEADLINE: Final = timedelta(hours=1)


def legal_verbs(state: State) -> list[Verb]:
    """The verbs that ``state`` allows."""
    return [verb for source, verb in TRANSITIONS if source is state]


def after(tenant_id: str, state: State, verb: Verb) -> State:
    """The state that ``verb`` leads to.

    Raises
    ------
    ComputeError
        INVALID_STATE listing the verbs that are legal instead.
    """
    target = TRANSITIONS.get((state, verb))
    if target is None:
        legal = [each for each in legal_verbs(state) if each is not Verb.FINISH]
        instead = f"Legal now: {', '.join(legal)}." if legal else f"No verb is legal now. {_MEND[state]}"
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"The tenant {tenant_id!r} is {state}, so it cannot {verb}.",
            mend=instead,
            reason=REFUSAL.get(state, "TENANT_ACTIVE"),
        )
    return target


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
        mend=_MEND[state],
        reason=REFUSAL[state],
    )
