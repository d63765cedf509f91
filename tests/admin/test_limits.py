"""The page of rate limits: what holds, and who met one, as the real store remembers it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.conf import settings
from django.test import Client, override_settings

from better_compute import ComputeError, Principal
from better_compute.envelope import rate
from tests.admin.conftest import make_viewer
from tests.envelope.test_rate import patient

pytestmark = pytest.mark.django_db

PAGE = "/admin/compute/ratelimit/"


def limited(**rates: Any) -> Any:
    return override_settings(COMPUTE={**settings.COMPUTE, "RATE": rates})


@pytest.fixture
def store() -> Iterator[str]:
    url = os.environ["CELERY_BROKER_URL"]
    rate._limiter.cache_clear()
    patient(rate._limiter(url))
    redis.Redis.from_url(url).delete(rate.LIMITED)
    yield url
    redis.Redis.from_url(url).delete(rate.LIMITED)


def test_without_limits_the_page_says_how_to_set_one(admin_client: Client) -> None:
    assert "No limit is set, so every caller may call as often" in admin_client.get(PAGE).content.decode()


def test_limits_without_a_store_are_shown_as_off(admin_client: Client) -> None:
    with limited(PRINCIPAL_PER_MINUTE=60):
        assert "Limits are set, but no store counts calls." in admin_client.get(PAGE).content.decode()


def test_a_silent_store_is_said_so(admin_client: Client) -> None:
    with limited(PRINCIPAL_PER_MINUTE=60, STORE_URL="redis://:secret@127.0.0.1:1/0"):
        page = admin_client.get(PAGE).content.decode()

    assert "While it is silent nothing is limited" in page
    assert "redis://127.0.0.1:1/0" in page
    assert "secret" not in page


def test_who_met_a_limit_is_listed_newest_first(admin_client: Client, store: str) -> None:
    names = [f"user/<b>{uuid.uuid4().hex}", f"user/{uuid.uuid4().hex}"]
    with limited(PRINCIPAL_PER_MINUTE=1, PRINCIPAL_BURST=2, TENANT_PER_MINUTE=600, STORE_URL=store):
        assert "Nobody met a limit." in admin_client.get(PAGE).content.decode()
        for name in names:
            caller = Principal(id=name, kind="token", tenant_id=uuid.uuid4().hex)
            rate.take(caller)
            rate.take(caller)
            with pytest.raises(ComputeError, match="RATE_LIMITED"):
                rate.take(caller)
        page = admin_client.get(PAGE).content.decode()

    assert "1 calls a minute" in page
    assert "600 calls a minute" in page
    assert page.index(names[1]) < page.index(names[0].replace("<b>", "&lt;b&gt;"))
    # A tenant whose bucket still holds tokens met none.
    assert "<td>tenant</td>" not in page


def test_the_store_remembers_a_thousand(store: str) -> None:
    client = redis.Redis.from_url(store)
    client.zadd(rate.LIMITED, {f"compute:rate:principal:old-{number}": number for number in range(1_500)})
    with limited(PRINCIPAL_PER_MINUTE=1, PRINCIPAL_BURST=1, STORE_URL=store):
        caller = Principal(id=uuid.uuid4().hex, kind="token")
        rate.take(caller)
        with pytest.raises(ComputeError):
            rate.take(caller)

    assert client.zcard(rate.LIMITED) == 1_000
    assert client.ttl(rate.LIMITED) > 86_000


def test_the_page_needs_its_view_permission(client: Client) -> None:
    viewer: Any = make_viewer()
    client.force_login(viewer)
    assert client.get(PAGE).status_code == 200
    viewer.user_permissions.clear()
    assert client.get(PAGE).status_code == 403
