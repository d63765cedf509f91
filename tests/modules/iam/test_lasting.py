"""Nothing outlasts what it came from: whatever is given or made with what ends, ends with it or before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from better_compute import Principal, compute
from better_compute.testing import advance_clock
from compute_modules.iam.evaluation import Narrowing
from compute_modules.iam.facts import Grant
from compute_modules.iam.patterns import Patterns
from tests.modules.iam.conftest import AUTHORIZER, OPERATOR, grant, may, poke, refused, revoke, rows, service

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

ALICE = "external/corp/alice"


def now() -> datetime:
    return rows("SELECT compute_now()")[0][0]  # type: ignore[no-any-return]


def token(by: Principal, tenant: str = "own", **more: Any) -> Any:
    return compute.api.tokens.create(by, {"tenantId": tenant, "label": "t", **more})


def presented(secret: str) -> Principal:
    """The caller that a token's secret makes, as of now."""
    from better_compute.store import transaction
    from compute_modules.iam import presented

    with transaction.transaction():
        return presented.Presented(presented.digest(secret)).principal()


def too_much(call: Callable[[], Any], reason: str = "EXCEEDS_GIVER") -> None:
    error = refused(call)
    assert error.reason == reason, error


def by_claim(role: str = "owner", *, minutes: int = 5, tenant: str = "own", inherit: bool = False) -> Principal:
    """Alice with a token of a provider, whose claims convey a role."""
    ends = now() + timedelta(minutes=minutes)
    held = Grant("claim", ALICE, "permit", role, Patterns(), tenant, None, inherit, None, ends)
    return Principal(id=ALICE, kind="token", acts_for=ALICE, narrowed_to=Narrowing(carried=(held,), expires_at=ends))


@pytest.fixture
def owner(world: None) -> Principal:
    owner = service("owner", home="own")
    grant("owner", "org", "owner", inherit=True)
    return owner


CORP = {"NAME": "corp", "ISSUER": "https://login.example", "AUDIENCE": "a"}


def provided(**more: Any) -> override_settings:
    """With the provider that knows alice."""
    return override_settings(COMPUTE={**settings.COMPUTE, "IAM": AUTHORIZER, "iam": {"PROVIDERS": [{**CORP, **more}]}})


class TestProviders:
    def test_an_owner_by_claim_gives_nothing_that_outlasts_the_claim(self) -> None:
        alice, friend = by_claim(), service("friend")
        too_much(lambda: grant("friend", "own", "viewer", by=alice))
        with provided():
            too_much(lambda: grant(ALICE, "own", "owner", by=alice))
        too_much(lambda: grant("friend", "own", "viewer", by=alice, expiresAt=now() + timedelta(minutes=6)))
        grant("friend", "own", "viewer", by=alice, expiresAt=now() + timedelta(minutes=4))
        assert may(friend) == "yes"
        advance_clock(timedelta(minutes=4))
        assert may(friend) == "NOT_FOUND"

    def test_nor_makes_a_token_that_does(self) -> None:
        alice = by_claim()
        too_much(lambda: token(alice))
        too_much(lambda: token(alice, expiresAt=now() + timedelta(minutes=6)))
        assert token(alice, expiresAt=now() + timedelta(minutes=4)).secret

    def test_breaking_the_glass_by_a_claim_lasts_no_longer_than_the_claim(self) -> None:
        alice = by_claim()
        broken = compute.api.break_glass.activate(alice, {"tenantId": "own", "reason": "fire", "minutes": 30})
        assert broken.expires_at <= now() + timedelta(minutes=5)

    def test_who_edits_a_role_that_claims_convey_must_hold_it_for_good(self) -> None:
        manager = service("manager")
        grant("manager", "own", actions=["compute:iam:manage", "compute:acme:read"])
        with provided(CLAIM_GRANTS=[{"CLAIM": "groups", "VALUE": "devs", "TENANT": "own", "ROLE": "own/dev"}]):
            make = {"tenantId": "own", "name": "dev", "permits": ["compute:acme:read"]}
            too_much(lambda: compute.api.roles.create(manager, {**make, "permits": ["*"]}))
            compute.api.roles.create(manager, make)
            too_much(lambda: compute.api.roles.update(manager, {"roleId": "own/dev", "permits": ["*"]}))
            compute.api.roles.delete(manager, {"roleId": "own/dev"})
            too_much(lambda: compute.api.roles.create(manager, {**make, "permits": ["compute:acme:poke"]}))


class TestScopedTokens:
    def test_a_token_that_ends_gives_nothing_that_outlasts_it(self, owner: Principal) -> None:
        service("friend")
        end = now() + timedelta(minutes=5)
        caller = presented(token(owner, expiresAt=end).secret)
        too_much(lambda: grant("friend", "own", "viewer", by=caller))
        too_much(lambda: grant("owner", "own", "owner", by=caller, expiresAt=end + timedelta(seconds=1)))
        assert grant("friend", "own", "viewer", by=caller, expiresAt=end).id

    def test_nor_lifts_a_forbid_nor_raises_a_ceiling_nor_lets_an_account_in_again_nor_grows_a_role(
        self, owner: Principal
    ) -> None:
        service("friend", home="own")
        grant("friend", "own", "viewer")
        forbid = grant("friend", "own", effect="forbid", actions=["compute:acme:read"])
        compute.api.roles.create(OPERATOR, {"tenantId": "own", "name": "r", "permits": ["compute:acme:read"]})
        grant("friend", "own", "own/r")
        compute.api.tenant_tree.set_ceiling(
            OPERATOR, {"parentId": "org", "tenantId": "own", "ceiling": ["compute:acme:*", "compute:iam:*"]}
        )
        compute.api.service_accounts.disable(OPERATOR, {"principal": "service/friend"})
        end = now() + timedelta(minutes=5)
        caller = presented(token(owner, everywhere=True, expiresAt=end).secret)
        too_much(lambda: revoke(forbid.id, by=caller))
        too_much(lambda: compute.api.service_accounts.enable(caller, {"principal": "service/friend"}))
        too_much(lambda: compute.api.roles.update(caller, {"roleId": "own/r", "permits": ["compute:acme:*"]}))
        too_much(
            lambda: compute.api.tenant_tree.set_ceiling(caller, {"parentId": "org", "tenantId": "own", "ceiling": None})
        )

    def test_breaking_the_glass_with_it_lasts_no_longer_than_it(self, owner: Principal) -> None:
        end = now() + timedelta(minutes=5)
        caller = presented(token(owner, expiresAt=end).secret)
        broken = compute.api.break_glass.activate(caller, {"tenantId": "own", "reason": "fire", "minutes": 30})
        assert broken.expires_at == end

    def test_a_core_token_that_ends_gives_nothing_that_outlasts_it(
        self, client: Client, django_user_model: Any
    ) -> None:
        from better_compute.envelope import tokens

        user = django_user_model.objects.create_user("mary")
        service("friend")
        grant(f"user/{user.pk}", "own", "owner")
        end = now() + timedelta(minutes=5)
        secret, _ = tokens.create(user=user, label="t", tenant_id="own", expires_at=end)

        def give(**more: Any) -> Any:
            return client.post(
                "/api/compute/grants/create",
                {"tenantId": "own", "principal": "service/friend", "role": "viewer", **more},
                content_type="application/json",
                headers={"Authorization": f"Bearer {secret}"},
            )

        answer = give()
        assert (answer.status_code, answer.json()["reason"]) == (403, "EXCEEDS_GIVER")
        assert give(expiresAt=end.isoformat()).status_code == 200


class TestBreakGlass:
    def test_it_reaches_as_far_down_as_the_right_to_it(self) -> None:
        here, below = service("here"), service("below")
        grant("here", "org", actions=["compute:iam:break-glass"])
        grant("below", "org", actions=["compute:iam:break-glass"], inherit=True)
        for by in (here, below):
            compute.api.break_glass.activate(by, {"tenantId": "org", "reason": "fire"})
        assert [may(here, "org"), may(here, "own")] == ["yes", "NOT_FOUND"]
        assert [may(below, "org"), may(below, "own")] == ["yes", "yes"]

    def test_an_owner_of_one_tenant_gives_nobody_what_is_below(self) -> None:
        boss, guard = service("boss"), service("guard")
        grant("boss", "org", "owner")
        too_much(lambda: grant("guard", "org", by=boss, actions=["compute:iam:break-glass"], inherit=True))
        grant("guard", "org", by=boss, actions=["compute:iam:break-glass"])
        for by in (boss, guard):
            compute.api.break_glass.activate(by, {"tenantId": "org", "reason": "fire"})
            assert refused(lambda by=by: poke(by, "own")).code == "NOT_FOUND"

    def test_it_lasts_no_longer_than_the_right_to_it(self) -> None:
        guard = service("guard")
        end = now() + timedelta(minutes=10)
        grant("guard", "org", actions=["compute:iam:break-glass"], expiresAt=end)
        broken = compute.api.break_glass.activate(guard, {"tenantId": "org", "reason": "fire", "minutes": 30})
        assert broken.expires_at == end

    def test_a_token_that_is_narrowed_to_some_actions_does_not_break_it(self) -> None:
        guard = service("guard", home="own")
        grant("guard", "own", actions=["compute:iam:break-glass", "compute:iam:manage-tokens"])
        narrow = token(guard, actions=["compute:iam:break-glass"]).secret
        too_much(lambda: compute.api.break_glass.activate(presented(narrow), {"tenantId": "own", "reason": "fire"}))
        whole = presented(token(guard).secret)
        assert compute.api.break_glass.activate(whole, {"tenantId": "own", "reason": "fire"}).id

    def test_it_reaches_no_tenant_in_which_it_is_forbidden(self) -> None:
        guard = service("guard")
        grant("guard", "org", actions=["compute:iam:break-glass"], inherit=True)
        grant("guard", "own", effect="forbid", actions=["compute:iam:break-glass"])
        compute.api.break_glass.activate(guard, {"tenantId": "org", "reason": "fire"})
        assert [may(guard, "org"), may(guard, "own")] == ["yes", "ACCESS_DENIED"]

    def test_who_lacks_an_action_gives_no_right_to_it_that_leaves_another_one_out(self) -> None:
        compute.api.roles.create(
            OPERATOR, {"tenantId": "own", "name": "most", "permits": ["*"], "butNot": ["compute:acme:poke"]}
        )
        service("friend")
        most = service("most")
        grant("most", "own", "own/most")
        too_much(lambda: grant("friend", "own", "own/most", by=most))


class TestMakers:
    """A token of a service account is its maker's too: it is worth no more than each of them at each call."""

    @pytest.fixture
    def operator(self, world: None) -> Principal:
        service("fresh", home="own")
        operator = service("operator", home="own")
        grant("operator", "own", "operator")
        return operator

    def test_a_token_of_an_account_that_gains_rights_later_stays_within_its_makers(self, operator: Principal) -> None:
        secret = token(operator, principal="service/fresh").secret
        grant("fresh", "own", "owner")
        caller = presented(secret)
        assert may(caller) == "yes"
        assert poke(caller).poked == "w1"
        error = refused(lambda: grant("operator", "own", "owner", by=caller))
        assert (error.code, error.reason) == ("ACCESS_DENIED", "TOKEN_MAKER")
        checked = compute.api.iam.check(caller, {"tenantId": "own", "action": "compute:iam:manage"})
        assert (checked.allowed, checked.reason) == (False, "TOKEN_MAKER")

    def test_nor_by_a_detour_over_tokens_that_it_makes(self, operator: Principal) -> None:
        first = token(operator, principal="service/fresh").secret
        grant("fresh", "own", "operator")
        second = token(presented(first)).secret
        turned = compute.api.tokens.rotate(
            presented(first), {"tokenId": token(OPERATOR, principal="service/fresh").token.id}
        )
        itself = presented(second)
        again = compute.api.tokens.rotate(itself, {"tokenId": itself.id.removeprefix("iam-token/")})
        grant("fresh", "own", "owner")
        for secret in (first, turned.secret, again.secret):
            error = refused(lambda secret=secret: grant("operator", "own", "owner", by=presented(secret)))
            assert error.reason == "TOKEN_MAKER"

    def test_it_gives_no_more_than_both_hold(self, operator: Principal) -> None:
        service("friend")
        manager = service("manager")
        given = grant(
            "manager", "own", actions=["compute:iam:manage", "compute:iam:manage-tokens", "compute:acme:read"]
        )
        caller = presented(token(manager, principal="service/fresh").secret)
        grant("fresh", "own", "owner")
        too_much(lambda: grant("friend", "own", by=caller, actions=["compute:acme:poke"]))
        assert grant("friend", "own", by=caller, actions=["compute:acme:read"]).id
        revoke(given.id)
        assert may(caller) == "NOT_FOUND"

    def test_it_ends_when_its_maker_may_not_call_any_more(self, django_user_model: Any) -> None:
        service("fresh", home="own")
        user = django_user_model.objects.create_user("mary")
        mary = Principal(id=f"user/{user.pk}", kind="session", user=user)
        grant(mary.id, "own", "operator")
        secret = token(mary, principal="service/fresh").secret
        grant("fresh", "own", "viewer")
        assert may(presented(secret)) == "yes"
        django_user_model.objects.filter(pk=user.pk).update(is_active=False)
        assert refused(lambda: presented(secret)).code == "UNAUTHENTICATED"

    def test_who_rotates_it_takes_it_over(self, operator: Principal) -> None:
        grant("fresh", "own", "viewer")
        made = token(operator, principal="service/fresh")
        boss = service("boss")
        grant("boss", "own", "owner")
        new = compute.api.tokens.rotate(boss, {"tokenId": made.token.id})
        assert (made.token.makers, new.token.makers) == (["service/operator"], ["service/boss"])
        compute.api.service_accounts.disable(OPERATOR, {"principal": "service/operator"})
        assert may(presented(new.secret)) == "yes"

    def test_ones_own_tokens_and_those_of_trusted_code_have_no_maker(self, operator: Principal) -> None:
        assert token(operator).token.makers == []
        assert token(OPERATOR, principal="service/fresh").token.makers == []


def test_an_expired_forbid_of_the_giver_takes_nothing_from_what_it_gives() -> None:
    giver = service("giver")
    service("friend")
    grant("giver", "own", "owner")
    grant("giver", "own", effect="forbid", actions=["compute:acme:poke"], expiresAt=now() + timedelta(minutes=5))
    too_much(lambda: grant("friend", "own", by=giver, actions=["compute:acme:poke"]))
    advance_clock(timedelta(minutes=5))
    assert grant("friend", "own", by=giver, actions=["compute:acme:poke"]).id


class TestCeilings:
    def test_raising_one_takes_holding_what_it_lets_through(self) -> None:
        compute.api.tenant_tree.set_ceiling(
            OPERATOR, {"parentId": "org", "tenantId": "own", "ceiling": ["compute:acme:read", "compute:iam:*"]}
        )
        maker = service("maker")
        grant("maker", "org", actions=["compute:iam:manage-tenants", "compute:acme:read"], inherit=True)

        def ceiling(*patterns: str, none: bool = False) -> Any:
            wanted = None if none else list(patterns)
            return compute.api.tenant_tree.set_ceiling(maker, {"parentId": "org", "tenantId": "own", "ceiling": wanted})

        too_much(lambda: ceiling("compute:acme:read", "compute:acme:poke"))
        too_much(lambda: ceiling(none=True))
        ceiling("compute:acme:read")
        too_much(lambda: ceiling("compute:acme:read", "compute:iam:manage"))
        assert ceiling("compute:acme:read", "compute:iam:manage-tenants").ceiling
