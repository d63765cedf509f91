"""What users of other systems complain of, each as a claim that holds here."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from better_compute import compute
from better_compute.testing import advance_clock
from compute_modules.iam import evaluation
from compute_modules.iam.evaluation import Question
from compute_modules.iam.facts import Facts, Grant
from compute_modules.iam.projection import projection
from tests.modules.iam.conftest import OPERATOR, grant, may, rows, service, tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


def many_grants(count: int, place: str = "far", *, forbid: bool = False, to: str = "service/other") -> None:
    """Grants written at once."""
    rows(
        "INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type,"
        " resource_id, inherit, reason, break_glass, created_by, revoked_by)"
        " SELECT gen_random_uuid(), %s || CASE WHEN %s THEN '' ELSE n::text END, %s, %s, %s::jsonb, %s, '', '', false,"
        " '', false, '', '' FROM generate_series(1, %s) AS n",
        to,
        forbid,
        "forbid" if forbid else "permit",
        "" if forbid else "viewer",
        '["compute:acme:poke"]' if forbid else "[]",
        place,
        count,
    )


class Looked:
    """Counts the grants that decisions look at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.grants: list[Grant] = []
        reaches = evaluation._reaches

        def counting(found: Grant, place: Any) -> bool:
            self.grants.append(found)
            return reaches(found, place)

        monkeypatch.setattr(evaluation, "_reaches", counting)


@pytest.mark.parametrize("allowed", [True, False], ids=["true", "false"])
def test_unrelated_grants_are_never_looked_at_whatever_the_answer(
    monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    """openfga/openfga#727, #1154, #818: a check slows down with tuples that have nothing to do with it."""
    service("bob")
    grant("bob", "own", "operator" if allowed else "viewer")
    many_grants(2_000)
    many_grants(500, "own", to="service/crowd")
    facts: Facts = read()
    looked = Looked(monkeypatch)
    verdict = evaluation.judge(facts, Question("service/bob", "compute:acme:poke", "own", now()))
    assert verdict.allowed is allowed
    assert len(looked.grants) == 1


def test_but_not_and_forbids_cost_a_list_no_statement_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """openfga/openfga#942: an exclusion and 300 tuples make a list a hundred times slower."""
    bob = service("bob")
    grant("bob", "root", "operator", inherit=True)
    for number in range(30):
        tenant(f"t{number}", "org")
    ask = {"tenantId": "org", "action": "compute:acme:poke"}

    def listed() -> tuple[int, list[str]]:
        compute.api.iam.list_allowed(bob, ask)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            ids = compute.api.iam.list_allowed(bob, ask).ids
        return len(queries), ids

    plain, all_of_them = listed()
    many_grants(300, "far", forbid=True, to="service/bob")
    grant("bob", "t7", effect="forbid", actions=["compute:acme:poke"])
    compute.api.roles.create(
        OPERATOR, {"tenantId": "root", "name": "most", "permits": ["*"], "butNot": ["compute:iam:*"]}
    )
    grant("bob", "org", "root/most", inherit=True)
    looked = Looked(monkeypatch)
    excluded, some_of_them = listed()
    assert excluded == plain
    assert set(all_of_them) - set(some_of_them) == {"t7"}
    # Two permits on the way to each of 33 tenants, one forbid, asked twice; of the 300 elsewhere none.
    assert len({found.id for found in looked.grants}) == 3


def test_each_grant_of_a_role_ends_at_its_own_end() -> None:
    """gravitational/teleport#15008: one bound for a whole set of roles is too coarse."""
    bob = service("bob")
    grant("bob", "own", "viewer", expiresAt=now() + timedelta(hours=1))
    grant("bob", "sib", "viewer", expiresAt=now() + timedelta(hours=3))
    assert [may(bob, place) for place in ("own", "sib")] == ["yes", "yes"]
    advance_clock(timedelta(hours=2))
    assert [may(bob, place) for place in ("own", "sib")] == ["NOT_FOUND", "yes"]


def now() -> Any:
    return rows("SELECT compute_now()")[0][0]


def read() -> Facts:
    from better_compute.store import transaction

    with transaction.transaction():
        return projection.read(compute.context("iam")).facts


#: Every complaint that the module's reference lists, and the test that answers it.
ANSWERED = {
    "openfga/openfga#727": "test_unrelated_grants_are_never_looked_at_whatever_the_answer",
    "openfga/openfga#942": "test_but_not_and_forbids_cost_a_list_no_statement_more",
    "openfga/openfga#2906": "test_expiring_grants_do_not_keep_anything_from_being_remembered",
    "openfga/openfga.dev#886": "test_a_change_by_another_process_acts_at_the_next_request",
    "gravitational/teleport#15008": "test_each_grant_of_a_role_ends_at_its_own_end",
    "projectcapsule/capsule#1875": "test_they_keep_their_rights_while_another_module_blocks_and_lose_them_with_the_end",
    "projectcapsule/capsule-proxy#1055": "test_a_dying_tenant_does_not_vanish_from_view",
    "kubernetes/kubernetes#60807": "test_a_hook_that_raises_is_a_blocker_by_name_with_its_mend_and_stops_no_other",
    "cozystack/cozystack#3078": "test_the_blockers_of_a_late_teardown_are_in_the_finding",
    "metal3-io/baremetal-operator#3149": "test_a_reconciler_may_work_for_a_dying_tenant_when_it_says_so",
    "dstackai/dstack#3449": "test_no_tenant_is_made_below_one_that_dies_in_either_order",
}

#: Every line of bad input, and the test that feeds it.
FED = {
    "algorithm confusion, none, audience, expired, future-dated, unsigned": "test_no_forged_token_comes_in",
    "keys that time out": "test_a_provider_that_does_not_answer_is_503_in_good_time",
    "keys that rotate": "test_a_rotation_is_followed_at_once",
    "clock skew": "test_a_clock_may_be_off_by_the_leeway",
    "cycles in the tree": "test_the_database_itself_keeps_the_tree_a_tree",
    "depth 9": "test_depth_nine_is_refused",
    "a grant larger than its giver's": "test_a_grant_may_not_exceed_its_givers",
    "grants on things that do not exist": "test_a_grant_on_what_does_not_exist_is_refused",
    "self-escalation": "test_operators_give_operators_and_never_owners",
    "deletion of the last owner": "test_two_owners_that_disable_each_other_at_once_leave_one",
    "deletion while methods run": "test_a_deletion_waits_for_a_call_that_is_adding_to_a_tenant_nobody_spoke_of_yet",
}


@pytest.mark.parametrize("said", [*ANSWERED, *FED])
def test_every_complaint_and_every_bad_input_has_its_test(said: str, pytestconfig: pytest.Config) -> None:
    wanted = {**ANSWERED, **FED}[said]
    sources = (pytestconfig.rootpath / "tests" / "modules").rglob("test_*.py")
    assert any(f"def {wanted}(" in source.read_text(encoding="utf-8") for source in sources), wanted
