"""Who calls: every token that is no good is 401, and sessions need their CSRF token."""

from __future__ import annotations

import hashlib
import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from better_compute import ComputeError
from better_compute.access import Token
from better_compute.envelope import tokens
from better_compute.store import clock
from better_compute.testing import advance_clock
from tests.envelope.conftest import EVERYTHING, Caller, audit_rows, count_rows, grown, make_user

pytestmark = pytest.mark.django_db

PATH = "/api/compute/plugins/probe/probes/peek"


def status(client: Client, authorization: str | None) -> int:
    headers = {} if authorization is None else {"Authorization": authorization}
    response = client.post(PATH, {"tenantId": "t1"}, content_type="application/json", headers=headers)
    if response.status_code == 401:
        assert response["WWW-Authenticate"].startswith('Bearer realm="better-compute"')
        assert json.loads(response.content)["code"] == "UNAUTHENTICATED"
    return response.status_code


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer  {good}",
        "Bearer {good} ",
        "Bearer {good} x",
        "Bearer {good},Bearer {good}",
        "{good}",
        "Basic {good}",
        "Token {good}",
        "Bearer bct_",
        "Bearer bct_short",
        "Bearer {good}x",
        "Bearer x{good}",
        "Bearer bct_" + "A" * 43,
        "Bearer bct_" + "é" * 43,
        "Bearer bct_" + "A" * 42 + "\n",
        "Bearer bct_" + "A" * 42 + "\x00",
        "Bearer BCT_" + "A" * 43,
        "Bearer " + "A" * 100_000,
        "Bearer null",
        "Bearer eyJhbGciOiJub25lIn0.e30.",
        "Bearer ' OR 1=1 --",
    ],
)
def test_a_token_that_is_no_good_is_401_and_nothing_is_recorded(caller: Caller, authorization: str | None) -> None:
    before = count_rows()
    given = authorization and authorization.replace("{good}", caller.secret)
    assert status(caller.client, given) == 401
    assert grown(before) == {}


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_may_be_written_in_any_case(caller: Caller, scheme: str) -> None:
    assert status(caller.client, f"{scheme} {caller.secret}") == 200


def test_only_the_hash_of_a_secret_of_256_bits_is_stored(caller: Caller) -> None:
    token = Token.objects.get()
    assert bytes(token.digest) == hashlib.sha256(caller.secret.encode()).digest()
    assert len(caller.secret) == 4 + 43
    assert caller.secret not in repr(token.__dict__)


def test_a_revoked_token_is_refused_from_the_next_call_on(caller: Caller) -> None:
    token = Token.objects.get()
    tokens.revoke(token.pk)
    revoked_at = Token.objects.get().revoked_at
    assert status(caller.client, f"Bearer {caller.secret}") == 401
    assert tokens.revoke(token.pk).revoked_at == revoked_at


def test_an_expired_token_is_refused_on_the_databases_clock(db: None, client: Client) -> None:
    user = make_user("mary", *EVERYTHING)
    secret, _ = tokens.create(user=user, label="x", tenant_id="t1", expires_at=clock.now() + timedelta(hours=1))
    assert status(client, f"Bearer {secret}") == 200
    advance_clock(timedelta(hours=1))
    assert status(client, f"Bearer {secret}") == 401


def test_an_inactive_users_token_is_refused(caller: Caller) -> None:
    get_user_model().objects.update(is_active=False)
    assert status(caller.client, f"Bearer {caller.secret}") == 401


def test_a_deleted_user_takes_the_tokens_along(caller: Caller) -> None:
    get_user_model().objects.all().delete()
    assert status(caller.client, f"Bearer {caller.secret}") == 401


def test_use_is_noted_at_most_once_a_minute(caller: Caller) -> None:
    def last_used() -> Any:
        status(caller.client, f"Bearer {caller.secret}")
        return Token.objects.get().last_used_at

    first = last_used()
    assert first is not None
    assert last_used() == first
    advance_clock(timedelta(seconds=61))
    assert last_used() > first


def test_a_session_needs_its_csrf_token_to_post(db: None) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("olga", is_superuser=True))
    response = client.post(PATH, {"tenantId": "t1"}, content_type="application/json")
    assert response.status_code == 403
    problem = json.loads(response.content)
    assert (problem["code"], problem["reason"]) == ("ACCESS_DENIED", "CSRF")
    assert client.get(f"{PATH}?tenantId=t1").status_code == 200
    client.cookies["csrftoken"] = "a" * 32
    response = client.post(PATH, {"tenantId": "t1"}, content_type="application/json", headers={"X-CSRFToken": "a" * 32})
    assert response.status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.example", "X-CSRFToken": "a" * 32}])
def test_a_session_that_is_refused_for_its_csrf_token_or_origin_is_recorded_as_denied(
    db: None, headers: dict[str, str]
) -> None:
    client = Client(enforce_csrf_checks=True)
    user = make_user("olga", is_superuser=True)
    client.force_login(user)
    client.cookies["csrftoken"] = "a" * 32
    before = count_rows()
    path = PATH.replace("peek", "write")
    assert client.post(path, {"tenantId": "t1"}, content_type="application/json", headers=headers).status_code == 403
    assert client.post(path, b"{", content_type="application/json", headers=headers).status_code == 403
    assert grown(before) == {"compute_audit_events": 2}
    known, unread = audit_rows()
    assert [(row["principal"], row["outcome"], row["code"]) for row in (known, unread)] == [
        (f"user/{user.pk}", "denied", "ACCESS_DENIED")
    ] * 2
    assert (unread["resource_type"], unread["resource_id"]) == ("system", "plugins.probe.probes.write")


def test_a_token_needs_no_csrf_token(caller: Caller) -> None:
    client = Client(enforce_csrf_checks=True)
    assert status(client, f"Bearer {caller.secret}") == 200


def test_an_inactive_session_is_refused(db: None, client: Client) -> None:
    user = make_user("olga", is_superuser=True)
    client.force_login(user)
    get_user_model().objects.update(is_active=False)
    assert client.get(f"{PATH}?tenantId=t1").status_code == 401


def test_a_bad_token_is_not_made_good_by_a_session(db: None, client: Client) -> None:
    client.force_login(make_user("olga", is_superuser=True))
    assert status(client, "Bearer nonsense") == 401


def test_no_secret_reaches_the_log_or_the_answer(caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for path in ("crash", "swallow", "nothing"):
        assert caller.secret not in caller.probe(path).content.decode()
    assert caller.secret not in caplog.text


@pytest.mark.parametrize("tenant_id", ["", "a b", "t\n", "x" * 129, "é"])
def test_a_token_is_not_made_for_a_malformed_tenant(db: None, tenant_id: str) -> None:
    with pytest.raises(ComputeError, match="does not match"):
        tokens.create(user=make_user("mary"), label="x", tenant_id=tenant_id)


def test_a_token_is_not_made_that_has_ended(db: None) -> None:
    with pytest.raises(ComputeError, match="is past"):
        tokens.create(user=make_user("mary"), label="x", tenant_id="t", expires_at=clock.now())
