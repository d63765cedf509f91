"""The table of states: every pair, the picture in the docs, and the fence in the database."""

from __future__ import annotations

import tomllib
from itertools import product
from pathlib import Path

import pytest
from django.db import IntegrityError, connection

from better_compute import ComputeError, ErrorCode, compute
from compute_modules.tenancy import states
from compute_modules.tenancy.states import State, Verb
from tests.modules.tenancy.conftest import OPERATOR

DOCS = Path(__file__).resolve().parents[3] / "docs" / "states" / "tenant.toml"


@pytest.mark.parametrize(("state", "verb"), list(product(State, Verb)))
def test_every_pair_leads_on_or_is_refused_with_the_legal_verbs(state: State, verb: Verb) -> None:
    if (state, verb) in states.TRANSITIONS:
        assert states.after("t1", state, verb) is states.TRANSITIONS[state, verb]
        return
    with pytest.raises(ComputeError) as caught:
        states.after("t1", state, verb)
    assert caught.value.code is ErrorCode.INVALID_STATE
    assert caught.value.message == f"The tenant 't1' is {state}, so it cannot {verb}."
    legal = [each for each in states.legal_verbs(state) if each is not Verb.FINISH]
    assert caught.value.mend.startswith(f"Legal now: {', '.join(legal)}." if legal else "No verb is legal now.")


def test_no_state_but_the_last_is_a_dead_end_and_all_are_reached() -> None:
    assert [state for state in State if not states.legal_verbs(state)] == [State.TORN_DOWN]
    assert {State.ACTIVE, *states.TRANSITIONS.values()} == set(State)


def test_the_picture_in_the_docs_has_these_transitions_and_no_others() -> None:
    drawn = tomllib.loads(DOCS.read_text())
    edges = {(edge["from"], edge["label"], edge["to"]) for edge in drawn["edges"]}
    assert set(drawn["states"]) == {state.value for state in State}
    assert edges == {(source.value, verb.value, target.value) for (source, verb), target in states.TRANSITIONS.items()}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("state", "verb"), list(product(State, [Verb.SUSPEND, Verb.RESUME, Verb.DELETE])))
def test_every_pair_behaves_so_over_the_api(state: State, verb: Verb) -> None:
    done = "compute_now()" if state is State.TORN_DOWN else "NULL"
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO compute_tenant_states (tenant_id, state, reason, blockers, passes, teardown_done_at)"
            f" VALUES ('t1', %s, '', '[]', 0, {done})",
            [state.value],
        )
    method = compute.api.tenants[verb.value]
    if (state, verb) in states.TRANSITIONS:
        assert method(OPERATOR, {"tenantId": "t1", "reason": "why"}).state == states.TRANSITIONS[state, verb].value
        return
    with pytest.raises(ComputeError) as caught:
        method(OPERATOR, {"tenantId": "t1", "reason": "why"})
    assert caught.value.code is ErrorCode.INVALID_STATE
    assert caught.value.reason == states.REFUSAL.get(state, "TENANT_ACTIVE")
    assert compute.api.tenants.get(OPERATOR, {"tenantId": "t1"}).state == state.value


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE compute_tenant_states SET state = 'active'",
        "UPDATE compute_tenant_states SET state = 'suspended'",
        "DELETE FROM compute_tenant_states",
        "UPDATE compute_tenant_states SET state = 'torn_down'",
        "UPDATE compute_tenant_states SET state = 'gone'",
    ],
)
def test_the_database_itself_never_lets_a_dying_tenant_return(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO compute_tenant_states (tenant_id, state, reason, blockers, passes)"
            " VALUES ('t1', 'deleting', '', '[]', 0)"
        )
        with pytest.raises(IntegrityError):
            cursor.execute(statement)
