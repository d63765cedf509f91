"""Scoped tokens: shown once, stored hashed, narrowed, rotated, and refused from the next request on once revoked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from better_compute import ErrorCode, Principal, compute
from better_compute.testing import advance_clock
from tests.locks import locked
from tests.modules.iam.conftest import OPERATOR, grant, may, refused, rows, service, told, who

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

Post = Callable[..., Any]


@pytest.fixture
def post(client: Client) -> Post:
    def call(secret: str, path: str = "plugins/acme/widgets/count", **body: Any) -> Any:
        return client.post(
            f"/api/compute/{path}",
            {"tenantId": "own", **body},
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )

    return call


def make(by: Principal = OPERATOR, name: str = "bot", tenant: str = "own", **more: Any) -> Any:
    return compute.api.tokens.create(
        by, {"tenantId": tenant, "label": "ci", **({} if by != OPERATOR else {"principal": f"service/{name}"}), **more}
    )


@pytest.fixture
def bot(world: None) -> Principal:
    bot = service("bot", home="own")
    grant("bot", "org", "owner", inherit=True)
    return bot


@pytest.mark.usefixtures("bot")
class TestSecrets:
    def test_a_token_lets_its_principal_in(self, post: Post) -> None:
        answer = post(make().secret)
        assert (answer.status_code, answer.json()) == (200, {"count": 0})

    def test_the_secret_is_shown_once_and_stored_nowhere(self) -> None:
        made = make()
        assert made.secret.startswith("bci_")
        assert made.token.hint == made.secret[:8]
        shown = repr(compute.api.tokens.list(OPERATOR, {"tenantId": "own"}))
        assert made.secret not in shown
        with connection.cursor() as cursor:
            cursor.execute("SELECT string_agg(t::text, '') FROM compute_iam_tokens AS t")
            stored = cursor.fetchone()[0]
            cursor.execute("SELECT coalesce(string_agg(data::text, ''), '') FROM compute_outbox")
            stored += cursor.fetchone()[0]
            cursor.execute("SELECT string_agg(encode(canonical, 'escape'), '') FROM compute_audit_events")
            stored += cursor.fetchone()[0]
        assert made.secret not in stored
        assert made.secret[8:] not in stored

    @pytest.mark.parametrize(
        "secret", ["bci_", "bci_" + "x" * 43, "bci_" + "x" * 44, "bci_" + "\u0661" * 43, "nothing"]
    )
    def test_what_is_no_token_is_401(self, post: Post, secret: str) -> None:
        answer = post(secret.encode("utf-8").decode("latin-1"))
        assert answer.status_code == 401
        assert answer.json()["code"] == "UNAUTHENTICATED"

    def test_revoked_it_is_refused_at_the_next_request(self, post: Post) -> None:
        made = make()
        assert post(made.secret).status_code == 200
        assert compute.api.tokens.revoke(OPERATOR, {"tokenId": made.token.id}).state == "revoked"
        assert post(made.secret).status_code == 401
        error = refused(lambda: compute.api.tokens.revoke(OPERATOR, {"tokenId": made.token.id}))
        assert (error.code, error.reason) == (ErrorCode.INVALID_STATE, "TOKEN_REVOKED")

    def test_expired_it_is_refused(self, post: Post) -> None:
        end = rows("SELECT compute_now() + interval '1 hour'")[0][0]
        made = make(expiresAt=end)
        assert post(made.secret).status_code == 200
        advance_clock(timedelta(hours=1))
        assert post(made.secret).status_code == 401
        assert compute.api.tokens.list(OPERATOR, {"tenantId": "own"}).items[0].state == "expired"

    def test_its_last_use_is_kept_to_the_minute(self, post: Post) -> None:
        made = make()

        def last_used() -> Any:
            return compute.api.tokens.list(OPERATOR, {"tenantId": "own"}).items[0].last_used_at

        assert last_used() is None
        post(made.secret)
        first = last_used()
        post(made.secret)
        assert first is not None
        assert last_used() == first
        advance_clock(timedelta(seconds=61))
        post(made.secret)
        assert last_used() > first

    @pytest.mark.parametrize(
        "lock", ["SELECT FROM compute_iam_tokens FOR UPDATE", "LOCK TABLE compute_iam_tokens IN SHARE MODE"]
    )
    def test_a_call_that_is_over_waits_for_no_lock_to_note_it(
        self, post: Post, monkeypatch: pytest.MonkeyPatch, lock: str
    ) -> None:
        monkeypatch.setattr("compute_modules.iam.presented.LONGEST_NOTE", "200ms")
        made = make()
        with locked(lock):
            assert post(made.secret).status_code == 200
        assert compute.api.tokens.list(OPERATOR, {"tenantId": "own"}).items[0].last_used_at is None
        post(made.secret)
        assert compute.api.tokens.list(OPERATOR, {"tenantId": "own"}).items[0].last_used_at is not None

    def test_a_disabled_service_account_has_no_token_that_is_good(self, post: Post) -> None:
        made = make()
        service("second")
        grant("second", "org", "owner", inherit=True)
        compute.api.service_accounts.disable(OPERATOR, {"principal": "service/bot"})
        assert post(made.secret).status_code == 401


@pytest.mark.usefixtures("bot")
class TestRotation:
    def test_the_new_one_takes_its_place_and_the_old_one_ends(self, post: Post) -> None:
        old = make(actions=["compute:acme:read"])
        new = compute.api.tokens.rotate(OPERATOR, {"tokenId": old.token.id})
        assert post(old.secret).status_code == 401
        assert post(new.secret).status_code == 200
        assert (new.token.actions, new.token.acts_in, new.token.label) == (["compute:acme:read"], "own", "ci")
        by_id = {token.id: token for token in compute.api.tokens.list(OPERATOR, {"tenantId": "own"}).items}
        assert by_id[old.token.id].replaced_by == new.token.id

    def test_within_the_grace_both_are_good(self, post: Post) -> None:
        old = make()
        new = compute.api.tokens.rotate(OPERATOR, {"tokenId": old.token.id, "graceSeconds": 60})
        assert [post(old.secret).status_code, post(new.secret).status_code] == [200, 200]
        advance_clock(timedelta(seconds=61))
        assert [post(old.secret).status_code, post(new.secret).status_code] == [401, 200]

    def test_an_ended_one_cannot_be_rotated_back_to_life(self) -> None:
        old = make()
        compute.api.tokens.revoke(OPERATOR, {"tokenId": old.token.id})
        error = refused(lambda: compute.api.tokens.rotate(OPERATOR, {"tokenId": old.token.id}))
        assert error.code is ErrorCode.INVALID_STATE

    def test_a_token_may_rotate_itself(self, post: Post) -> None:
        old = make(actions=["compute:iam:manage-tokens", "compute:acme:read"])
        answer = post(old.secret, "tokens/rotate", tokenId=old.token.id, tenantId=None)
        assert answer.status_code == 400
        answer = post_only(post, old.secret, "tokens/rotate", tokenId=old.token.id)
        assert answer.status_code == 200
        assert post(answer.json()["secret"]).status_code == 200


def post_only(post: Post, secret: str, path: str, **body: Any) -> Any:
    return Client().post(
        f"/api/compute/{path}",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )


@pytest.mark.usefixtures("bot")
class TestNarrowing:
    def test_it_acts_in_its_tenant_and_below_and_nowhere_else(self, post: Post) -> None:
        own = make(actsIn="own").secret
        assert post(own, tenantId="own").status_code == 200
        assert post(own, tenantId="sib").status_code == 404
        assert post(own, tenantId="org").status_code == 404
        everywhere = make(everywhere=True).secret
        assert [post(everywhere, tenantId=tenant).status_code for tenant in ("org", "own", "sib", "far")] == [
            200,
            200,
            200,
            404,
        ]

    def test_it_does_what_it_is_narrowed_to_and_no_more(self, post: Post) -> None:
        secret = make(actions=["compute:acme:read"]).secret
        assert post(secret).status_code == 200
        answer = post(secret, "plugins/acme/widgets/poke", widgetId="w1")
        assert (answer.status_code, answer.json()["reason"]) == (403, "TOKEN_SCOPE")

    def test_it_is_never_worth_more_than_its_principal(self, post: Post) -> None:
        service("weak", home="own")
        grant("weak", "own", "viewer")
        secret = make(name="weak", actions=["*"]).secret
        assert post(secret).status_code == 200
        assert post(secret, "plugins/acme/widgets/poke", widgetId="w1").status_code == 403
        service("new", home="own")
        assert post(make(name="new").secret).status_code == 404

    @pytest.mark.parametrize(
        "wider",
        [
            {},
            {"actions": ["*"]},
            {"actions": ["compute:acme:*"]},
            {"actions": ["compute:acme:read"], "everywhere": True},
            {"actions": ["compute:acme:read"], "expiresAt": None},
            {"actions": ["compute:acme:read"], "expiresAt": "2301-01-01T00:00:00Z"},
        ],
        ids=str,
    )
    def test_a_token_makes_no_token_that_is_wider_or_lasts_longer(self, post: Post, wider: dict[str, Any]) -> None:
        end = rows("SELECT compute_now() + interval '1 hour'")[0][0]
        secret = make(actions=["compute:acme:read", "compute:iam:manage-tokens"], expiresAt=end).secret
        before = rows("SELECT count(*) FROM compute_iam_tokens")
        answer = post(secret, "tokens/create", label="more", **wider)
        assert (answer.status_code, answer.json()["reason"]) == (403, "EXCEEDS_GIVER")
        assert rows("SELECT count(*) FROM compute_iam_tokens") == before
        within = {"actions": ["compute:acme:read"], "expiresAt": end.isoformat()}
        assert post(secret, "tokens/create", label="less", **within).status_code == 200

    def test_a_narrowed_token_gives_nothing_beyond_itself(self, post: Post) -> None:
        service("friend")
        secret = make(actions=["compute:iam:manage", "compute:acme:read"]).secret
        ask = {"principal": "service/friend", "actions": ["compute:acme:poke"]}
        answer = post(secret, "grants/create", **ask)
        assert (answer.status_code, answer.json()["reason"]) == (403, "EXCEEDS_GIVER")
        assert post(secret, "grants/create", **{**ask, "actions": ["compute:acme:read"]}).status_code == 200


class TestOthers:
    def test_one_sees_and_revokes_ones_own_only_unless_one_manages(self, bot: Principal) -> None:
        small = service("small", home="own")
        grant("small", "own", "operator")
        mine = make(by=small)
        theirs = make()
        assert [token.id for token in compute.api.tokens.list(small, {"tenantId": "own"}).items] == [mine.token.id]
        error = refused(lambda: compute.api.tokens.revoke(small, {"tokenId": theirs.token.id}))
        assert error.code is ErrorCode.NOT_FOUND
        assert len(compute.api.tokens.list(bot, {"tenantId": "own"}).items) == 2
        compute.api.tokens.revoke(small, {"tokenId": mine.token.id})

    def test_a_token_of_another_tenant_is_not_there(self, bot: Principal) -> None:
        service("far-bot", home="far")
        far = make(name="far-bot", tenant="far")
        for verb in ("revoke", "rotate"):
            error = refused(lambda verb=verb: compute.api.tokens[verb](bot, {"tokenId": far.token.id}))
            assert error.code is ErrorCode.NOT_FOUND

    def test_users_have_tokens_too_and_lose_them_with_their_account(self, post: Post, django_user_model: Any) -> None:
        user = django_user_model.objects.create_user("mary")
        mary = Principal(id=f"user/{user.pk}", kind="session", user=user)
        grant(mary.id, "own", "operator")
        made = make(by=mary)
        assert post(made.secret).status_code == 200
        django_user_model.objects.filter(pk=user.pk).update(is_active=False)
        assert post(made.secret).status_code == 401


class TestBreakGlass:
    @pytest.fixture
    def guard(self, world: None) -> Principal:
        guard = service("guard")
        grant("guard", "org", actions=["compute:iam:break-glass", "compute:iam:read"], inherit=True)
        return guard

    def activate(self, by: Principal, **more: Any) -> Any:
        return compute.api.break_glass.activate(by, {"tenantId": "org", "reason": "fire", **more})

    def test_it_gives_everything_below_for_a_while_and_sounds_the_alarm(self, guard: Principal) -> None:
        assert may(guard) == "ACCESS_DENIED"
        broken = self.activate(guard, minutes=10)
        assert (broken.break_glass, broken.state, broken.reason) == (True, "active", "fire")
        assert may(guard) == "yes"
        (alarm,) = told("iam.break-glass-activated")
        assert alarm["data"] == {"principal": "service/guard", "reason": "fire", "minutes": 10}
        advance_clock(timedelta(minutes=10))
        assert may(guard) == "ACCESS_DENIED"

    def test_it_can_be_ended_and_stays_in_the_log(self, guard: Principal) -> None:
        broken = self.activate(guard)
        compute.api.break_glass.end(guard, {"grantId": broken.id})
        assert may(guard) == "ACCESS_DENIED"
        assert len(told("iam.break-glass-ended")) == 1
        log = compute.api.break_glass.list(guard, {"tenantId": "org"}).items
        assert [(entry.principal, entry.reason, entry.state) for entry in log] == [("service/guard", "fire", "revoked")]
        error = refused(lambda: compute.api.break_glass.end(guard, {"grantId": broken.id}))
        assert error.code is ErrorCode.INVALID_STATE

    def test_nobody_breaks_it_who_was_not_told_that_he_may(self) -> None:
        bob = service("bob")
        grant("bob", "org", "operator")
        error = refused(lambda: self.activate(bob))
        assert error.code is ErrorCode.ACCESS_DENIED
        assert told("iam.break-glass-activated") == []

    @pytest.mark.parametrize(
        "more", [{"reason": ""}, {"reason": " \n"}, {"minutes": 0}, {"minutes": 61}, {"minutes": 2_000}], ids=str
    )
    def test_without_a_reason_or_for_too_long_it_is_refused(self, guard: Principal, more: dict[str, Any]) -> None:
        assert refused(lambda: self.activate(guard, **more)).code is ErrorCode.INVALID_INPUT

    def test_once_at_a_time(self, guard: Principal) -> None:
        self.activate(guard)
        assert refused(lambda: self.activate(guard)).code is ErrorCode.CONFLICT

    def test_what_it_gives_cannot_be_given_on_for_longer(self, guard: Principal) -> None:
        service("friend")
        self.activate(guard)
        assert refused(lambda: grant("friend", "own", "viewer", by=guard)).reason == "EXCEEDS_GIVER"
        assert refused(lambda: grant("guard", "org", "owner", by=guard, inherit=True)).reason == "EXCEEDS_GIVER"

    def test_a_forbid_beats_it(self, guard: Principal) -> None:
        self.activate(guard)
        grant("guard", "own", effect="forbid", actions=["compute:acme:*"])
        assert may(guard) == "ACCESS_DENIED"

    def test_it_is_a_finding_while_it_lasts(self, guard: Principal) -> None:
        self.activate(guard)
        findings = {finding.check: finding for finding in compute.self_check().findings}
        assert "service/guard in 'org'" in findings["iam.break-glass"].message
        assert "iam.no-owner" in findings


def test_a_core_token_of_a_user_acts_in_its_tenant_only(client: Client, django_user_model: Any) -> None:
    from better_compute.envelope import tokens

    user = django_user_model.objects.create_user("mary")
    grant(f"user/{user.pk}", "org", "viewer", inherit=True)
    secret, _ = tokens.create(user=user, label="t", tenant_id="own")
    for tenant, status in (("own", 200), ("sib", 404), ("org", 404)):
        answer = client.post(
            "/api/compute/plugins/acme/widgets/count",
            {"tenantId": tenant},
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )
        assert answer.status_code == status
    assert may(who("nobody")) == "NOT_FOUND"
