"""The table of states: every pair, and the fence in the database. The docs draw the same table."""

from __future__ import annotations

from itertools import product

import pytest
from django.db import IntegrityError, connection

from better_compute import ComputeError, ErrorCode, compute
from better_compute.testing import check_states
from compute_modules.tenancy.states import TABLE, State, Verb
from tests.modules.tenancy.conftest import OPERATOR


def test_every_pair_leads_on_or_is_refused_with_the_legal_verbs() -> None:
    check_states(TABLE)
    assert TABLE.legal(State.ACTIVE) == [Verb.SUSPEND, Verb.DELETE]
    assert TABLE.legal(State.DELETING) == []


def test_no_state_but_the_last_is_a_dead_end_and_all_are_reached() -> None:
    assert TABLE.final == [State.TORN_DOWN]
    assert set(TABLE.states) == set(State)


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
    if (state, verb) in TABLE.transitions:
        assert method(OPERATOR, {"tenantId": "t1", "reason": "why"}).state == TABLE.transitions[state, verb].value
        return
    with pytest.raises(ComputeError) as caught:
        method(OPERATOR, {"tenantId": "t1", "reason": "why"})
    assert caught.value.code is ErrorCode.INVALID_STATE
    assert caught.value.reason == TABLE.reason(state)
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
