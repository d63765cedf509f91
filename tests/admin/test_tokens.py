"""Tokens are made with a secret shown once, and revoked after being asked."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from better_compute.access import Token
from better_compute.envelope import tokens
from better_compute.models import AuditEvent
from tests.admin.conftest import make_viewer

pytestmark = pytest.mark.django_db

LIST = "/admin/compute/token/"


def make() -> Token:
    user = get_user_model().objects.create_user("caller")
    return tokens.create(user=user, label="deploy", tenant_id="t1")[1]


def test_a_new_tokens_secret_is_shown_once(admin_client: Client) -> None:
    get_user_model().objects.create_user("caller")

    made = admin_client.post(LIST + "add/", {"user": "caller", "label": "deploy", "tenant_id": "t1"})

    secret = re.search(r"bct_[A-Za-z0-9_-]{43}", made.content.decode())
    assert secret is not None
    assert "no-store" in made["Cache-Control"]
    token = Token.objects.get()
    assert bytes(token.digest) == tokens.digest(secret[0])
    assert token.tenant_id == "t1"
    for page in (LIST, f"{LIST}{token.pk}/change/"):
        body = admin_client.get(page).content.decode()
        assert secret[0] not in body
        assert "deploy" in body


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"user": "nobody"}, "There is no user"),
        ({"tenant_id": "a b"}, "does not match"),
        ({"expires_at": "2001-01-01 00:00"}, "is past"),
        ({"expires_at": "soon"}, "Enter a valid date/time"),
        ({"label": ""}, "This field is required"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_reason(admin_client: Client, wrong: dict[str, str], said: str) -> None:
    get_user_model().objects.create_user("caller")

    page = admin_client.post(LIST + "add/", {"user": "caller", "label": "deploy", "tenant_id": "t1", **wrong})

    assert said in page.content.decode()
    assert not Token.objects.exists()


def test_revoking_asks_first(admin_client: Client) -> None:
    token = make()

    page = admin_client.post(f"{LIST}{token.pk}/revoke/")

    assert "This cannot be taken back." in page.content.decode()
    assert Token.objects.get().revoked_at is None


def test_a_confirmed_token_is_revoked(admin_client: Client) -> None:
    token = make()

    admin_client.post(f"{LIST}{token.pk}/revoke/", {"confirmed": "yes"})

    assert Token.objects.get().revoked_at is not None
    assert "revoked" in admin_client.get(LIST).content.decode()
    assert "Revoke</button>" not in admin_client.get(f"{LIST}{token.pk}/change/").content.decode()


def test_revoking_answers_only_post(admin_client: Client) -> None:
    assert admin_client.get(f"{LIST}{make().pk}/revoke/").status_code == 405


def test_a_token_that_is_gone_leads_back(admin_client: Client) -> None:
    address = f"{LIST}00000000-0000-4000-8000-000000000000/revoke/"

    assert admin_client.post(address, {"confirmed": "yes"}).status_code == 302
    assert admin_client.post(f"{LIST}nonsense/revoke/").status_code == 302


def test_a_viewer_may_neither_make_nor_revoke(client: Client) -> None:
    token = make()
    client.force_login(make_viewer())  # type: ignore[arg-type]

    assert client.get(LIST + "add/").status_code == 403
    assert client.post(LIST + "add/", {"user": "caller", "label": "x"}).status_code == 403
    assert client.post(f"{LIST}{token.pk}/revoke/", {"confirmed": "yes"}).status_code == 403
    assert Token.objects.get().revoked_at is None


def test_the_change_page_writes_nothing(admin_client: Client) -> None:
    token = make()

    assert admin_client.post(f"{LIST}{token.pk}/change/", {"label": "other"}).status_code == 403
    assert Token.objects.get().label == "deploy"


def test_only_a_superuser_makes_a_token_in_another_users_name(client: Client) -> None:
    get_user_model().objects.create_superuser("root")
    client.force_login(make_viewer("add_token"))  # type: ignore[arg-type]

    refused = client.post(LIST + "add/", {"user": "root", "label": "deploy"})
    own = client.post(LIST + "add/", {"user": "viewer", "label": "deploy"})

    assert "Only a superuser may make a token in another user" in refused.content.decode()
    assert "shown this once" in own.content.decode()
    assert Token.objects.get().user.username == "viewer"


def test_a_token_reaches_no_tenant_that_its_maker_does_not(client: Client) -> None:
    client.force_login(make_viewer("add_token"))  # type: ignore[arg-type]

    refused = client.post(LIST + "add/", {"user": "viewer", "label": "deploy", "tenant_id": "victim"})

    assert "may make a token that acts in the tenant" in refused.content.decode()
    assert not Token.objects.exists()


def test_who_may_act_in_every_tenant_makes_a_token_for_one(client: Client) -> None:
    client.force_login(make_viewer("add_token", "any_tenant"))  # type: ignore[arg-type]

    client.post(LIST + "add/", {"user": "viewer", "label": "deploy", "tenant_id": "t1"})

    assert Token.objects.get().tenant_id == "t1"


def test_making_and_revoking_are_audited(admin_client: Client) -> None:
    admin_client.post(LIST + "add/", {"user": "admin", "label": "deploy", "tenant_id": "t1"})
    token = Token.objects.get()
    admin_client.post(f"{LIST}{token.pk}/revoke/", {"confirmed": "yes"})

    recorded = AuditEvent.objects.order_by("at").values_list("action", "tenant_id", "resource_id", "outcome")
    assert list(recorded) == [
        ("compute:token:create", "t1", str(token.pk), "allowed"),
        ("compute:token:revoke", "t1", str(token.pk), "allowed"),
    ]
