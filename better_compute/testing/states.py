"""Walk a table of states: every state with every verb."""

from __future__ import annotations

from typing import Any

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.states import StateTable


def check_states(table: StateTable[Any, Any]) -> int:
    """See that every pair of a :class:`~better_compute.StateTable` leads on, or is refused as it must be.

    A refusal is INVALID_STATE, names the thing, its state and the verb, and lists the verbs a caller has instead.

    Returns
    -------
    int
        How many pairs there are.

    Raises
    ------
    AssertionError
        Naming the pair, or the state without a way on that has no mend.
    """
    walked = 0
    for state, verb, target in table.pairs():
        walked += 1
        try:
            met = table.after("it", state, verb)
        except ComputeError as error:
            _see(target is None, f"{verb} of {state} is refused, and the table leads to {target}")
            _see_refusal(table, state, verb, error)
        else:
            _see(met is target, f"{verb} of {state} leads to {met}, and to {target} in the table")
    for state in table.states:
        _see(table.legal(state) or table.mends.get(state), f"{state} leaves no verb to callers, and has no mend")
    return walked


def _see_refusal(table: StateTable[Any, Any], state: Any, verb: Any, error: ComputeError) -> None:
    _see(error.code is ErrorCode.INVALID_STATE, f"{verb} of {state} is {error.code}")
    _see(error.reason == table.reason(state), f"{verb} of {state} has the reason {error.reason}")
    for part in (table.what, "'it'", str(state), str(verb)):
        _see(part in error.message, f"{part!r} is not in {error.message!r}")
    for legal in table.legal(state):
        _see(str(legal) in error.mend, f"{legal} is not in {error.mend!r}")


def _see(holds: object, what: str) -> None:
    if not holds:
        raise AssertionError(what)
