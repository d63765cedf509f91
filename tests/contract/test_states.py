"""A table of states: what it refuses to be, what it offers, and how it is walked."""

from __future__ import annotations

from enum import StrEnum

import pytest

from better_compute import ComputeError, ErrorCode, StateTable
from better_compute.testing import check_states


class State(StrEnum):
    """Of a door."""

    OPEN = "open"
    SHUT = "shut"
    BRICKED_UP = "bricked_up"


class Verb(StrEnum):
    """What can be done with it."""

    SHUT = "shut"
    OPEN = "open"
    DECAY = "decay"


def door(**more: object) -> StateTable[State, Verb]:
    return StateTable[State, Verb](
        **{
            "what": "fire door",
            "initial": {State.OPEN},
            "transitions": {
                (State.OPEN, Verb.SHUT): State.SHUT,
                (State.SHUT, Verb.OPEN): State.OPEN,
                (State.SHUT, Verb.DECAY): State.BRICKED_UP,
            },
            "by_itself": {Verb.DECAY},
            "mends": {State.BRICKED_UP: "Use the window."},
            **more,
        }  # type: ignore[arg-type]
    )


def test_a_legal_verb_leads_on() -> None:
    assert door().after("d1", State.OPEN, Verb.SHUT) is State.SHUT


def test_a_refusal_names_the_thing_and_the_legal_verbs_but_not_those_of_time() -> None:
    with pytest.raises(ComputeError) as caught:
        door().after("d1", State.SHUT, Verb.SHUT)
    error = caught.value
    assert (error.code, error.reason) == (ErrorCode.INVALID_STATE, "FIRE_DOOR_SHUT")
    assert (error.message, error.mend) == ("The fire door 'd1' is shut, so it cannot shut.", "Legal now: open.")


def test_where_no_verb_is_left_the_mend_is_told() -> None:
    with pytest.raises(ComputeError) as caught:
        door().after("d1", State.BRICKED_UP, Verb.OPEN)
    assert caught.value.mend == "No verb is legal now. Use the window."


def test_a_state_that_nothing_leads_to_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="fire door include shut, which nothing leads to"):
        door(initial={State.BRICKED_UP}, transitions={(State.SHUT, Verb.OPEN): State.OPEN})


def test_the_walk_meets_every_pair() -> None:
    assert check_states(door()) == 9
    assert door().final == [State.BRICKED_UP]


def test_the_walk_misses_the_mend_of_a_state_without_verbs() -> None:
    with pytest.raises(AssertionError, match="bricked_up leaves no verb to callers"):
        check_states(door(mends={}))
