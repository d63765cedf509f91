"""Default deny, forbid beats permit, no tenant above its ceiling, and what is not yours is not there."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from better_compute import ErrorCode, Principal, compute
from better_compute.testing import advance_clock
from compute_modules.iam.projection import projection
from tests.modules.iam.conftest import (
    OPERATOR,
    count,
    grant,
    may,
    no_widgets,
    poke,
    refused,
    revoke,
    rows,
    service,
    tenant,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


class TestDefaultDeny:
    def test_who_was_granted_nothing_sees_nothing(self) -> None:
        bob = service("bob")
        error = refused(lambda: poke(bob))
        assert (error.code, no_widgets()) == (ErrorCode.NOT_FOUND, True)

    def test_what_was_not_granted_is_denied_to_who_may_see_the_tenant(self) -> None:
        bob = service("bob")
        grant("bob", "own", "viewer")
        assert count(bob).count == 0
        error = refused(lambda: poke(bob))
        assert (error.code, error.reason) == (ErrorCode.ACCESS_DENIED, "PERMISSION_MISSING")
        assert no_widgets()

    def test_a_superuser_has_what_was_granted_and_nothing_more(self) -> None:
        user = get_user_model().objects.create_superuser("root")
        session = Principal(id=f"user/{user.pk}", kind="session", user=user)
        assert may(session) == "NOT_FOUND"
        grant(f"user/{user.pk}", "own", "viewer")
        assert may(session) == "yes"
        user.is_active = False
        assert may(session) == "UNAUTHENTICATED"

    def test_a_tenant_without_a_place_in_the_tree_is_not_there_whoever_asks(self) -> None:
        bob = service("bob")
        grant("bob", "root", "owner", inherit=True)
        assert may(bob, "nowhere") == "NOT_FOUND"

    def test_the_installation_is_judged_at_the_root_tenant(self) -> None:
        bob = service("bob")
        grant("bob", "org", "owner", inherit=True)
        assert refused(lambda: compute.api.system.version(bob)).code is ErrorCode.ACCESS_DENIED
        grant("bob", "root", "viewer")
        assert compute.api.system.version(bob).core


class TestReach:
    def test_a_grant_holds_in_its_tenant_only(self) -> None:
        bob = service("bob")
        grant("bob", "org", "viewer")
        assert {place: may(bob, place) for place in ("org", "own", "sib", "far", "other", "root")} == {
            "org": "yes",
            "own": "NOT_FOUND",
            "sib": "NOT_FOUND",
            "far": "NOT_FOUND",
            "other": "NOT_FOUND",
            "root": "NOT_FOUND",
        }

    def test_with_inherit_it_holds_below_and_never_above_or_beside(self) -> None:
        bob = service("bob")
        grant("bob", "org", "viewer", inherit=True)
        assert [may(bob, place) for place in ("org", "own", "sib")] == ["yes"] * 3
        assert [may(bob, place) for place in ("root", "other", "far")] == ["NOT_FOUND"] * 3

    def test_a_grant_on_one_resource_shows_and_allows_that_one_only(self) -> None:
        bob = service("bob")
        created = grant("bob", "own", actions=["compute:iam:read"])
        revoke(created.id)
        other = grant("bob", "own", "viewer")
        grant("bob", "own", actions=["compute:iam:read"], resource={"type": "iam-grant", "id": created.id})
        revoke(other.id)
        assert compute.api.grants.get(bob, {"grantId": created.id}).id == created.id
        assert refused(lambda: compute.api.grants.get(bob, {"grantId": other.id})).code is ErrorCode.NOT_FOUND
        assert may(bob) == "NOT_FOUND"


class TestForbid:
    @pytest.mark.parametrize("forbid_at", ["root", "org", "own"])
    @pytest.mark.parametrize("permit_at", ["root", "org", "own"])
    def test_forbid_beats_permit_wherever_either_stands(self, permit_at: str, forbid_at: str) -> None:
        bob = service("bob")
        grant("bob", permit_at, "owner", inherit=True)
        forbidding = grant("bob", forbid_at, effect="forbid", actions=["compute:acme:*"])
        error = refused(lambda: count(bob))
        assert (error.code, error.reason) == (ErrorCode.ACCESS_DENIED, "FORBIDDEN")
        revoke(forbidding.id)
        assert may(bob) == "yes"

    def test_a_forbid_says_nothing_of_other_actions_or_tenants(self) -> None:
        bob = service("bob")
        grant("bob", "org", "owner", inherit=True)
        grant("bob", "own", effect="forbid", actions=["compute:acme:poke"])
        assert count(bob).count == 0
        assert poke(bob, "sib").poked == "w1"
        assert refused(lambda: poke(bob, "own", "w2")).reason == "FORBIDDEN"

    def test_a_forbid_alone_makes_nothing_visible(self) -> None:
        bob = service("bob")
        grant("bob", "own", effect="forbid", actions=["compute:acme:poke"])
        assert may(bob) == "NOT_FOUND"


class TestCeilings:
    def test_a_child_never_has_more_than_its_parent(self) -> None:
        bob = service("bob")
        grant("bob", "own", "owner")
        compute.api.tenant_tree.set_ceiling(
            OPERATOR, {"parentId": "root", "tenantId": "org", "ceiling": ["compute:acme:read", "compute:iam:*"]}
        )
        assert may(bob) == "yes"
        assert refused(lambda: poke(bob)).reason == "CEILING"

    def test_a_ceiling_above_its_parents_is_refused(self) -> None:
        compute.api.tenant_tree.set_ceiling(
            OPERATOR, {"parentId": "root", "tenantId": "org", "ceiling": ["compute:acme:*"]}
        )
        for ceiling in (["*"], ["compute:iam:read"], ["compute:*:read"]):
            error = refused(
                lambda ceiling=ceiling: compute.api.tenant_tree.set_ceiling(
                    OPERATOR, {"parentId": "org", "tenantId": "own", "ceiling": ceiling}
                )
            )
            assert (error.code, error.reason) == (ErrorCode.ACCESS_DENIED, "CEILING")
        error = refused(lambda: tenant("new", "org", ceiling=["*"]))
        assert error.reason == "CEILING"
        assert rows("SELECT 1 FROM compute_iam_tenants WHERE id = 'new'") == []

    def test_a_tenant_cannot_raise_its_own_ceiling(self) -> None:
        bob = service("bob")
        grant("bob", "own", "owner")
        compute.api.tenant_tree.set_ceiling(
            OPERATOR, {"parentId": "org", "tenantId": "own", "ceiling": ["compute:iam:*"]}
        )
        for parent in ("org", "own"):
            error = refused(
                lambda parent=parent: compute.api.tenant_tree.set_ceiling(
                    bob, {"parentId": parent, "tenantId": "own", "ceiling": None}
                )
            )
            assert error.code is ErrorCode.NOT_FOUND


class TestTime:
    def test_a_grant_ends_at_its_end_with_no_job_and_begins_at_its_beginning(self) -> None:
        bob = service("bob")
        now = rows("SELECT compute_now()")[0][0]
        grant("bob", "own", "viewer", startsAt=now + timedelta(hours=1), expiresAt=now + timedelta(hours=2))
        assert may(bob) == "NOT_FOUND"
        advance_clock(timedelta(minutes=61))
        assert may(bob) == "yes"
        advance_clock(timedelta(minutes=60))
        assert may(bob) == "NOT_FOUND"

    def test_expiring_grants_do_not_keep_anything_from_being_remembered(self) -> None:
        bob = service("bob")
        now = rows("SELECT compute_now()")[0][0]
        grant("bob", "own", "viewer", expiresAt=now + timedelta(hours=1))
        assert may(bob) == "yes"
        known = projection.known
        advance_clock(timedelta(hours=2))
        assert may(bob) == "NOT_FOUND"
        assert projection.known is known

    def test_a_revocation_acts_at_the_next_request(self) -> None:
        bob = service("bob")
        given = grant("bob", "own", "viewer")
        assert may(bob) == "yes"
        revoke(given.id)
        assert may(bob) == "NOT_FOUND"

    def test_a_disabled_service_account_is_refused_at_its_next_request(self) -> None:
        bob = service("bob")
        grant("bob", "own", "viewer")
        assert may(bob) == "yes"
        compute.api.service_accounts.disable(OPERATOR, {"principal": "service/bob"})
        assert may(bob) == "NOT_FOUND"
        compute.api.service_accounts.enable(OPERATOR, {"principal": "service/bob"})
        assert may(bob) == "yes"


class TestAsking:
    def test_check_explain_and_who_can_agree_with_what_calls_meet(self) -> None:
        service("bob")
        eve = service("eve")
        grant("eve", "org", "viewer", inherit=True)
        permit = grant("bob", "org", "operator", inherit=True)
        forbid = grant("bob", "own", effect="forbid", actions=["compute:acme:poke"])
        ask = {"tenantId": "own", "principal": "service/bob"}
        for action, allowed, reason, decided_by in (
            ("compute:acme:read", True, "GRANTED", permit.id),
            ("compute:acme:poke", False, "FORBIDDEN", forbid.id),
            ("compute:iam:manage", False, "PERMISSION_MISSING", ""),
        ):
            explained = compute.api.iam.explain(eve, {**ask, "action": action})
            assert (explained.allowed, explained.reason, explained.decided_by) == (allowed, reason, decided_by)
            assert explained.path == ["root", "org", "own"]
            assert {step.grant_id for step in explained.considered} == {permit.id, forbid.id}
            checked = compute.api.iam.check(eve, {**ask, "action": action})
            assert (checked.allowed, checked.reason) == (allowed, reason)
            who_can = compute.api.iam.who_can(eve, {"tenantId": "own", "action": action})
            assert ("service/bob" in [each.principal for each in who_can.items]) is allowed

    def test_without_a_principal_it_is_about_the_caller(self) -> None:
        bob = service("bob")
        grant("bob", "own", "viewer")
        answers = compute.api.iam.batch_check(
            bob, {"tenantId": "own", "checks": [{"action": "compute:acme:read"}, {"action": "compute:acme:poke"}]}
        )
        assert [answer.allowed for answer in answers.results] == [True, False]

    def test_a_resource_of_another_tenant_is_not_there(self) -> None:
        bob = service("bob")
        grant("bob", "own", "owner")
        far = grant("bob", "far", "viewer")
        ask = {"tenantId": "own", "action": "compute:iam:read", "resource": {"type": "iam-grant", "id": far.id}}
        assert refused(lambda: compute.api.iam.check(bob, ask)).code is ErrorCode.NOT_FOUND

    def test_list_allowed_tells_the_tenants_below_where_it_holds(self) -> None:
        bob = service("bob")
        grant("bob", "org", "viewer", inherit=True)
        grant("bob", "sib", effect="forbid", actions=["compute:acme:read"])
        ask = {"tenantId": "org", "action": "compute:acme:read"}
        assert compute.api.iam.list_allowed(bob, ask).ids == ["org", "own"]
        assert compute.api.iam.list_allowed(bob, {**ask, "ids": ["far", "sib", "own", "nowhere"]}).ids == ["own"]

    @pytest.mark.parametrize("dying", ["own", "org"])
    def test_list_allowed_leaves_out_where_check_is_refused_for_the_tenants_end(self, dying: str) -> None:
        bob = service("bob")
        grant("bob", "root", "viewer", inherit=True)
        ask = {"tenantId": "root", "action": "compute:acme:read"}
        compute.api.tenants.delete(OPERATOR, {"tenantId": dying, "reason": "over"})
        listed = set(compute.api.iam.list_allowed(bob, ask).ids)
        for place in ("root", "org", "own", "sib", "far"):
            check = partial(compute.api.iam.check, bob, {**ask, "tenantId": place})
            if place in listed:
                assert check().allowed, place
            else:
                assert refused(check).reason == "TENANT_DELETING", place

    @pytest.mark.parametrize("action", ["compute:nothing:read", "compute:acme:*", "*", "acme", "compute:acme:poke\n"])
    def test_an_action_that_does_not_exist_is_bad_input(self, action: str) -> None:
        error = refused(lambda: compute.api.iam.check(OPERATOR, {"tenantId": "own", "action": action}))
        assert error.code is ErrorCode.INVALID_INPUT

    def test_the_catalog_is_built_from_every_module_and_plugin(self) -> None:
        catalog = compute.api.iam.catalog(OPERATOR, {"tenantId": "root"})
        assert {"compute:acme:poke", "compute:tenants:delete", "compute:iam:manage", "compute:system:read"} <= set(
            catalog.actions
        )
        assert {role.role for role in catalog.roles} == {"owner", "operator", "viewer"}
        assert "iam-grant" in catalog.resource_types


class TestListAllowed:
    def test_only_the_tenants_own_resources_are_told_whatever_the_type(self) -> None:
        bob = service("bob", home="own")
        boss = grant("bob", "own", "owner")
        far = grant("bob", "far", "viewer")
        service("far-bot", home="far")
        for type, own, others in (
            ("iam-grant", boss.id, [far.id, "00000000-0000-4000-8000-000000000000", "no-uuid"]),
            ("iam-service", "service/bob", ["service/far-bot", "service/nobody"]),
        ):
            ask = {"tenantId": "own", "action": "compute:iam:read", "resourceType": type, "ids": [*others, own, own]}
            assert compute.api.iam.list_allowed(bob, ask).ids == [own]
            for id in others:
                one = {"tenantId": "own", "action": "compute:iam:read", "resource": {"type": type, "id": id}}
                assert refused(lambda one=one: compute.api.iam.check(bob, one)).code is ErrorCode.NOT_FOUND

    @pytest.mark.parametrize(
        "more", [{"resourceType": "nothing", "ids": ["x"]}, {"resourceType": "iam-grant"}], ids=str
    )
    def test_an_unknown_type_and_one_without_ids_are_bad_input(self, more: dict[str, object]) -> None:
        ask = {"tenantId": "own", "action": "compute:iam:read", **more}
        assert refused(lambda: compute.api.iam.list_allowed(OPERATOR, ask)).code is ErrorCode.INVALID_INPUT

    def test_a_thousand_resources_take_no_statement_each(self, django_assert_max_num_queries: Any) -> None:
        bob = service("bob", home="own")
        rows(
            "INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type,"
            " resource_id, inherit, reason, break_glass, created_by, revoked_by)"
            " SELECT gen_random_uuid(), 'service/bob', 'permit', 'viewer', '[]', 'own', '', '', false, '', false, '',"
            " '' FROM generate_series(1, 1000)"
        )
        ids = [id for (id,) in rows("SELECT id::text FROM compute_iam_grants ORDER BY 1")]
        ask = {"tenantId": "own", "action": "compute:iam:read", "resourceType": "iam-grant", "ids": ids}
        assert compute.api.iam.list_allowed(bob, ask).ids == ids
        with django_assert_max_num_queries(12):
            compute.api.iam.list_allowed(bob, ask)

    def test_many_ids_beside_many_tenants_take_a_step_each(self) -> None:
        rows(
            "INSERT INTO compute_iam_tenants (id, parent_id, kind, name, path, depth)"
            " SELECT 't' || n, 'other', 'organisation', 't', '[]', 1 FROM generate_series(1, 20000) AS n"
        )
        bob = service("bob", home="other")
        grant("bob", "other", "viewer", inherit=True)
        ask = {"tenantId": "other", "action": "compute:acme:read", "ids": [f"t{n}" for n in range(1, 1_001)]}
        compute.api.iam.list_allowed(bob, ask)
        began = time.perf_counter()
        assert len(compute.api.iam.list_allowed(bob, ask).ids) == 1_000
        # A set built anew for each id took more than six seconds.
        assert time.perf_counter() - began < 2.0
