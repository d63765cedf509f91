"""Nobody gets more than what somebody who has it gave: every path to more is refused and writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from better_compute import ComputeError, ErrorCode, Principal, compute
from better_compute.store import transaction
from compute_modules.iam.facts import Changes, Facts, Grant, Tenant
from compute_modules.iam.giving import Gift, exceeding
from compute_modules.iam.patterns import Patterns, Rights
from compute_modules.iam.roles import BUILT_IN
from tests.engine.conftest import eventually
from tests.modules.iam.conftest import OPERATOR, grant, may, poke, refused, revoke, rows, service, tenant, who
from tests.modules.tenancy.conftest import in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


def now() -> Any:
    return rows("SELECT compute_now()")[0][0]


def state() -> list[tuple[Any, ...]]:
    """Everything that decisions are made from, but for versions."""
    return [
        tuple(rows("SELECT id::text, revoked_at FROM compute_iam_grants ORDER BY 1")),
        tuple(rows("SELECT id, permits::text, deleted_at FROM compute_iam_roles ORDER BY 1")),
        tuple(rows("SELECT id, disabled_at FROM compute_iam_principals ORDER BY 1")),
        tuple(rows("SELECT id, ceiling::text FROM compute_iam_tenants ORDER BY 1")),
        tuple(rows("SELECT id::text, revoked_at FROM compute_iam_tokens ORDER BY 1")),
    ]


def refused_and_unchanged(call: Callable[[], Any], reason: str = "EXCEEDS_GIVER") -> ComputeError:
    before = state()
    error = refused(call)
    assert error.reason == reason, error
    assert state() == before
    return error


@pytest.fixture
def manager(world: None) -> Principal:
    """May manage who may do what in org and below, and acme's reads; not acme's pokes."""
    manager = service("manager")
    grant("manager", "org", actions=["compute:iam:*", "compute:acme:read"], inherit=True)
    return manager


MORE_THAN_THE_MANAGER = [
    {"role": "owner"},
    {"role": "operator"},
    {"actions": ["compute:acme:poke"]},
    {"actions": ["compute:acme:*"]},
    {"actions": ["compute:*:read"]},
    {"actions": ["*"]},
    {"actions": ["compute:acme:read", "compute:acme:poke"]},
]


@pytest.mark.parametrize("more", MORE_THAN_THE_MANAGER, ids=str)
@pytest.mark.parametrize("to", ["manager", "friend"])
def test_a_grant_may_not_exceed_its_givers(manager: Principal, to: str, more: dict[str, Any]) -> None:
    service("friend")
    error = refused_and_unchanged(lambda: grant(to, "own", by=manager, **more))
    assert error.code is ErrorCode.ACCESS_DENIED


def test_what_one_holds_one_may_give(manager: Principal) -> None:
    friend = service("friend")
    # compute:iam:* holds break-glass, which takes everything; the other verbs may be given.
    grant("friend", "own", by=manager, actions=["compute:acme:read", "compute:iam:read", "compute:iam:manage"])
    assert may(friend) == "yes"


def test_who_may_break_the_glass_may_have_everything_so_only_an_owner_gives_it(manager: Principal) -> None:
    service("friend")
    refused_and_unchanged(lambda: grant("friend", "own", by=manager, actions=["compute:iam:break-glass"]))
    refused_and_unchanged(lambda: grant("friend", "own", by=manager, actions=["compute:iam:*"]))
    owner = service("owner")
    grant("owner", "org", "owner", inherit=True)
    grant("friend", "own", by=owner, actions=["compute:iam:break-glass"])


@pytest.mark.parametrize("place", ["root", "other", "far"])
def test_nowhere_but_where_one_holds_it(manager: Principal, place: str) -> None:
    service("friend")
    before = state()
    error = refused(lambda: grant("friend", place, by=manager, actions=["compute:acme:read"]))
    assert error.code is ErrorCode.NOT_FOUND
    assert state() == before


def test_not_below_what_one_holds_in_one_tenant_only() -> None:
    narrow = service("narrow")
    service("friend")
    grant("narrow", "org", "owner")
    refused_and_unchanged(lambda: grant("friend", "org", "viewer", by=narrow, inherit=True))
    assert grant("friend", "org", "viewer", by=narrow).id


def test_not_for_longer_than_one_holds_it() -> None:
    brief = service("brief")
    service("friend")
    end = now() + timedelta(hours=1)
    grant("brief", "own", "owner", expiresAt=end)
    refused_and_unchanged(lambda: grant("friend", "own", "viewer", by=brief))
    refused_and_unchanged(lambda: grant("friend", "own", "viewer", by=brief, expiresAt=end + timedelta(seconds=1)))
    assert grant("friend", "own", "viewer", by=brief, expiresAt=end).id


def test_not_the_whole_tenant_by_who_holds_one_resource() -> None:
    bob = service("bob")
    some = grant("bob", "own", actions=["compute:iam:manage", "compute:iam:read"])
    grant("bob", "own", actions=["compute:acme:*"], resource={"type": "iam-grant", "id": some.id})
    refused_and_unchanged(lambda: grant("bob", "own", by=bob, actions=["compute:acme:read"]))


def test_not_what_one_is_forbidden(manager: Principal) -> None:
    service("friend")
    owner = service("owner")
    grant("owner", "org", "owner", inherit=True)
    grant("owner", "own", effect="forbid", actions=["compute:acme:poke"])
    refused_and_unchanged(lambda: grant("friend", "own", "owner", by=owner))
    refused_and_unchanged(lambda: grant("friend", "own", by=owner, actions=["compute:acme:*"]))
    # A forbid further down counts for what would be inherited there.
    refused_and_unchanged(lambda: grant("friend", "org", by=owner, actions=["compute:acme:*"], inherit=True))
    assert grant("friend", "sib", by=owner, actions=["compute:acme:*"]).id


class TestForbids:
    def test_nobody_lifts_a_forbid_of_its_own(self) -> None:
        owner = service("owner")
        grant("owner", "org", "owner", inherit=True)
        forbid = grant("owner", "own", effect="forbid", actions=["compute:acme:poke"])
        refused_and_unchanged(lambda: revoke(forbid.id, by=owner))

    def test_lifting_a_forbid_takes_what_it_forbids(self, manager: Principal) -> None:
        service("friend")
        forbid = grant("friend", "own", effect="forbid", actions=["compute:acme:poke"])
        refused_and_unchanged(lambda: revoke(forbid.id, by=manager))
        readable = grant("friend", "own", effect="forbid", actions=["compute:acme:read"])
        assert revoke(readable.id, by=manager).state == "revoked"

    def test_a_forbid_cannot_name_a_role_that_somebody_could_shrink(self) -> None:
        service("friend")
        error = refused(lambda: grant("friend", "own", "viewer", effect="forbid"))
        assert error.code is ErrorCode.INVALID_INPUT


class TestRoles:
    def create(self, by: Principal, *permits: str, name: str = "helper") -> Any:
        return compute.api.roles.create(by, {"tenantId": "own", "name": name, "permits": list(permits)})

    def update(self, by: Principal, *permits: str) -> Any:
        return compute.api.roles.update(by, {"roleId": "own/helper", "permits": list(permits)})

    def test_a_role_that_is_granted_grows_only_by_what_its_changer_holds(self, manager: Principal) -> None:
        helper = service("helper")
        self.create(manager, "compute:acme:read")
        grant("helper", "own", "own/helper")
        grant("manager", "own", "own/helper")
        refused_and_unchanged(lambda: self.update(manager, "compute:acme:read", "compute:acme:poke"))
        refused_and_unchanged(lambda: self.update(manager, "*"))
        self.update(manager, "compute:iam:read")
        assert may(helper) == "ACCESS_DENIED"

    def test_making_a_role_gives_nothing_and_granting_it_is_judged(self, manager: Principal) -> None:
        self.create(manager, "*")
        refused_and_unchanged(lambda: grant("manager", "own", "own/helper", by=manager))

    def test_a_role_of_another_tenant_cannot_be_granted(self) -> None:
        service("bob")
        self.create(OPERATOR, "compute:acme:read")
        for place in ("sib", "org", "far"):
            assert refused(lambda place=place: grant("bob", place, "own/helper")).code is ErrorCode.NOT_FOUND

    def test_a_role_that_is_conveyed_cannot_be_deleted(self) -> None:
        service("bob")
        self.create(OPERATOR, "compute:acme:read")
        given = grant("bob", "own", "own/helper")
        delete = {"roleId": "own/helper"}
        assert refused(lambda: compute.api.roles.delete(OPERATOR, delete)).code is ErrorCode.IN_USE
        revoke(given.id)
        compute.api.roles.delete(OPERATOR, delete)
        assert refused(lambda: compute.api.roles.delete(OPERATOR, delete)).code is ErrorCode.NOT_FOUND
        self.create(OPERATOR, "compute:acme:poke")


class TestImpersonation:
    def test_a_token_of_a_service_account_takes_all_that_it_has(self, manager: Principal) -> None:
        service("strong", home="own")
        grant("strong", "own", "owner")
        make = {"tenantId": "own", "label": "t", "principal": "service/strong"}
        refused_and_unchanged(lambda: compute.api.tokens.create(manager, make))
        token = compute.api.tokens.create(OPERATOR, make).token
        refused_and_unchanged(lambda: compute.api.tokens.rotate(manager, {"tokenId": token.id}))

    def test_nobody_makes_tokens_of_another_person(self, manager: Principal, django_user_model: Any) -> None:
        user = django_user_model.objects.create_user("mary")
        make = {"tenantId": "own", "label": "t", "principal": f"user/{user.pk}"}
        refused_and_unchanged(lambda: compute.api.tokens.create(manager, make), "NOT_YOURSELF")

    def test_enabling_a_service_account_takes_what_it_gets_back(self, manager: Principal) -> None:
        service("strong")
        grant("strong", "own", "operator")
        compute.api.service_accounts.disable(manager, {"principal": "service/strong"})
        refused_and_unchanged(lambda: compute.api.service_accounts.enable(manager, {"principal": "service/strong"}))

    def test_a_new_tenant_makes_nobody_owner_of_what_the_maker_does_not_hold(self) -> None:
        maker = service("maker")
        grant("maker", "org", actions=["compute:iam:manage-tenants", "compute:iam:read"], inherit=True)
        ask = {"parentId": "org", "tenantId": "new", "kind": "project", "name": "new"}
        refused_and_unchanged(lambda: compute.api.tenant_tree.create(maker, {**ask, "owner": "service/maker"}))
        compute.api.tenant_tree.create(maker, ask)
        assert refused(lambda: poke(maker, "new")).code is ErrorCode.ACCESS_DENIED

    def test_an_owner_of_the_tenant_above_may_make_one_with_an_owner(self) -> None:
        owner = service("owner")
        friend = service("friend")
        grant("owner", "org", "owner", inherit=True)
        ask = {"parentId": "org", "tenantId": "new", "kind": "project", "name": "new", "owner": "service/friend"}
        compute.api.tenant_tree.create(owner, ask)
        assert poke(friend, "new").poked == "w1"


class TestLastOwner:
    @pytest.fixture
    def only(self, world: None) -> Any:
        service("only")
        return grant("only", "org", "owner", inherit=True)

    def test_the_last_owner_cannot_be_revoked(self, only: Any) -> None:
        error = refused_and_unchanged(lambda: revoke(only.id), "LAST_OWNER")
        assert error.code is ErrorCode.IN_USE
        assert refused(lambda: revoke(only.id, by=who("only"))).reason == "LAST_OWNER"

    def test_nor_forbidden_nor_disabled(self, only: Any) -> None:
        refused_and_unchanged(lambda: grant("only", "org", effect="forbid", actions=["*"]), "LAST_OWNER")
        refused_and_unchanged(
            lambda: compute.api.service_accounts.disable(OPERATOR, {"principal": "service/only"}), "LAST_OWNER"
        )

    def test_an_owner_for_a_while_does_not_count(self, only: Any) -> None:
        service("other")
        grant("other", "org", "owner", expiresAt=now() + timedelta(days=1))
        refused_and_unchanged(lambda: revoke(only.id), "LAST_OWNER")

    def test_with_another_owner_it_can(self, only: Any) -> None:
        service("other")
        grant("other", "root", "owner", inherit=True)
        assert revoke(only.id).state == "revoked"

    def test_a_tenant_below_keeps_an_owner_too(self, only: Any) -> None:
        """The other owner of org does not inherit, so own and sib would be nobody's."""
        service("other")
        grant("other", "org", "owner")
        error = refused_and_unchanged(lambda: revoke(only.id), "LAST_OWNER")
        assert "'own'" in error.message or "'sib'" in error.message
        refused_and_unchanged(
            lambda: grant("only", "org", effect="forbid", actions=["compute:iam:manage"]), "LAST_OWNER"
        )
        refused_and_unchanged(lambda: grant("only", "own", effect="forbid", actions=["compute:iam:*"]), "LAST_OWNER")
        refused_and_unchanged(
            lambda: compute.api.service_accounts.disable(OPERATOR, {"principal": "service/only"}), "LAST_OWNER"
        )
        for place in ("own", "sib"):
            grant("other", place, "owner")
        assert revoke(only.id).state == "revoked"

    def test_a_tenant_that_never_had_an_owner_keeps_nobody(self) -> None:
        service("bob")
        given = grant("bob", "own", "operator")
        assert revoke(given.id).state == "revoked"

    def test_two_owners_disabled_at_once_leave_one(self, only: Any) -> None:
        service("other")
        grant("other", "org", "owner", inherit=True)
        start = threading.Barrier(2)

        def disable(name: str) -> Any:
            start.wait(10)
            return compute.api.service_accounts.disable(OPERATOR, {"principal": f"service/{name}"})

        threads = [in_thread(lambda name=name: disable(name)) for name in ("only", "other")]
        for thread, _ in threads:
            thread.join(20)
        answers = [answers[0] for _, answers in threads]
        assert [error.reason for error in answers if isinstance(error, ComputeError)] == ["LAST_OWNER"], answers
        assert rows("SELECT count(*) FROM compute_iam_principals WHERE disabled_at IS NULL") == [(1,)]

    def test_a_revocation_and_a_forbid_at_once_leave_one(self, only: Any) -> None:
        service("other")
        others = grant("other", "org", "owner", inherit=True)
        start = threading.Barrier(2)

        def run(call: Callable[[], Any]) -> Any:
            start.wait(10)
            return call()

        threads = [
            in_thread(lambda: run(lambda: revoke(others.id))),
            in_thread(lambda: run(lambda: grant("only", "org", effect="forbid", actions=["*"]))),
        ]
        for thread, _ in threads:
            thread.join(20)
        answers = [answers[0] for _, answers in threads]
        assert [error.reason for error in answers if isinstance(error, ComputeError)] == ["LAST_OWNER"], answers

    def test_two_owners_that_revoke_each_other_at_once_leave_one(self, only: Any) -> None:
        service("other")
        others = grant("other", "org", "owner", inherit=True)
        start = threading.Barrier(2)

        def attack(by: str, id: str) -> Any:
            start.wait(10)
            return revoke(id, by=who(by))

        threads = [in_thread(lambda: attack("only", others.id)), in_thread(lambda: attack("other", only.id))]
        for thread, _ in threads:
            thread.join(20)
        answers = [answers[0] for _, answers in threads]
        assert sum(isinstance(answer, ComputeError) for answer in answers) == 1, answers
        left = rows("SELECT count(*) FROM compute_iam_grants WHERE role = 'owner' AND revoked_at IS NULL")
        assert left == [(1,)]


def test_a_giver_whose_right_is_revoked_meanwhile_gives_nothing() -> None:
    """The right is judged after every earlier change has committed, not as of when the call began."""
    owner = service("owner")
    service("friend")
    service("other")
    given = grant("owner", "org", "owner", inherit=True)
    grant("other", "org", "owner", inherit=True)
    with transaction.transaction():
        rows("SELECT compute_iam_raise()")
        giving, answers = in_thread(lambda: grant("friend", "own", "owner", by=owner))
        eventually(lambda: rows("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"))
        rows("UPDATE compute_iam_grants SET revoked_at = compute_now() WHERE id = %s", given.id)
    giving.join(10)
    assert isinstance(answers[0], ComputeError)
    assert answers[0].reason == "EXCEEDS_GIVER"
    assert may(who("friend")) == "NOT_FOUND"


class TestBadInput:
    @pytest.mark.parametrize(
        ("more", "code"),
        [
            ({}, "INVALID_INPUT"),
            ({"role": "viewer", "actions": ["*"]}, "INVALID_INPUT"),
            ({"role": "emperor"}, "NOT_FOUND"),
            ({"role": "org/none"}, "NOT_FOUND"),
            ({"actions": ["compute:nothing:*"]}, "INVALID_INPUT"),
            ({"actions": ["acme"]}, "INVALID_INPUT"),
            ({"actions": []}, "INVALID_INPUT"),
            ({"actions": ["compute:acme:read"] * 101}, "INVALID_INPUT"),
            ({"role": "viewer", "resource": {"type": "nothing", "id": "x"}}, "INVALID_INPUT"),
            ({"role": "viewer", "resource": {"type": "iam-grant", "id": "x"}}, "NOT_FOUND"),
            ({"role": "viewer", "expiresAt": "2001-01-01T00:00:00Z"}, "INVALID_INPUT"),
            ({"role": "viewer", "expiresAt": "2301-01-01T00:00:00"}, "INVALID_INPUT"),
            (
                {"role": "viewer", "startsAt": "2301-01-02T00:00:00Z", "expiresAt": "2301-01-01T00:00:00Z"},
                "INVALID_INPUT",
            ),
            ({"role": "viewer", "principal": "service/nobody"}, "NOT_FOUND"),
            ({"role": "viewer", "principal": "user/999999"}, "NOT_FOUND"),
            ({"role": "viewer", "principal": "external/nobodys/alice"}, "NOT_FOUND"),
            ({"role": "viewer", "principal": "user/x y"}, "INVALID_INPUT"),
            ({"role": "viewer", "principal": "user/\u0661"}, "INVALID_INPUT"),
            ({"role": "viewer", "principal": "root"}, "INVALID_INPUT"),
        ],
        ids=str,
    )
    def test_a_grant_on_what_does_not_exist_is_refused(self, more: dict[str, Any], code: str) -> None:
        service("bob")
        before = state()
        ask = {"tenantId": "own", "principal": "service/bob", **more}
        assert refused(lambda: compute.api.grants.create(OPERATOR, ask)).code == code
        assert state() == before

    def test_a_grant_that_ended_cannot_be_revoked_again(self) -> None:
        service("bob")
        given = grant("bob", "own", "viewer")
        revoke(given.id)
        error = refused(lambda: revoke(given.id))
        assert (error.code, error.reason) == (ErrorCode.INVALID_STATE, "GRANT_REVOKED")


class TestTree:
    def test_depth_nine_is_refused(self) -> None:
        above = "root"
        for depth in range(2, 9):
            above = tenant(f"d{depth}", above, "organisation").id
        error = refused(lambda: tenant("d9", above, "organisation"))
        assert (error.code, error.reason) == (ErrorCode.INVALID_INPUT, "INVALID_HIERARCHY")

    @pytest.mark.parametrize(
        ("id", "parent", "kind"),
        [("own", "own", "project"), ("x", "own", "project"), ("x", "own", "organisation"), ("x", "root", "project")],
    )
    def test_a_place_that_cannot_be_is_refused(self, id: str, parent: str, kind: str) -> None:
        assert refused(lambda: tenant(id, parent, kind)).reason == "INVALID_HIERARCHY"

    def test_a_taken_id_is_a_conflict_and_an_unknown_parent_is_not_there(self) -> None:
        assert refused(lambda: tenant("sib", "org")).code is ErrorCode.CONFLICT
        assert refused(lambda: tenant("x", "nowhere")).code is ErrorCode.NOT_FOUND

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE compute_iam_tenants SET parent_id = 'own' WHERE id = 'org'",
            "UPDATE compute_iam_tenants SET parent_id = 'own' WHERE id = 'own'",
            "UPDATE compute_iam_tenants SET kind = 'root', parent_id = NULL WHERE id = 'org'",
            "INSERT INTO compute_iam_tenants (id, kind, name, path, depth) VALUES ('r2', 'root', 'r2', '[]', 1)",
            "INSERT INTO compute_iam_tenants (id, parent_id, kind, name, path, depth)"
            " VALUES ('x', 'x', 'organisation', 'x', '[]', 1)",
            "DELETE FROM compute_iam_tenants WHERE id = 'far'",
            "DELETE FROM compute_iam_principals",
        ],
    )
    def test_the_database_itself_keeps_the_tree_a_tree(self, statement: str) -> None:
        from django.db import IntegrityError, connection

        service("bob")
        with connection.cursor() as cursor, pytest.raises(IntegrityError):
            cursor.execute(statement)

    def test_a_path_that_lies_is_put_right(self) -> None:
        rows('UPDATE compute_iam_tenants SET path = \'["root", "other", "own"]\' WHERE id = \'own\'')
        assert rows("SELECT path::text FROM compute_iam_tenants WHERE id = 'own'") == [('["root", "org", "own"]',)]


def test_operators_give_operators_and_never_owners() -> None:
    """The built-in roles against each other, as patterns: who holds one may give it and what is within it."""
    at = datetime.now(tz=UTC)
    within = {
        ("owner", "owner"): True,
        ("owner", "operator"): True,
        ("owner", "viewer"): True,
        ("operator", "operator"): True,
        ("operator", "viewer"): True,
        ("viewer", "viewer"): True,
        ("operator", "owner"): False,
        ("viewer", "owner"): False,
        ("viewer", "operator"): False,
    }
    for (giver, given), allowed in within.items():
        held = Grant("1", "p", "permit", giver, Patterns(), "t", None, False, None, None)
        facts = Facts().changed(Changes(tenants=(Tenant("t", "root", ("t",)),), grants=(held,)), 1, "g")
        missing = exceeding(facts, "p", Gift(BUILT_IN[given], "t"), at)
        assert (missing is None) is allowed, (giver, given, missing)
    assert Rights(Patterns(("*",))).match("compute:x:y")
