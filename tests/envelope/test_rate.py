"""Rate limits hold per principal and tenant, in the store's own time, and never stand in the way when it is gone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

import pytest
import redis
from django.test import override_settings

from better_compute import Principal
from better_compute.envelope import rate
from tests.envelope.conftest import EVERYTHING, Caller, MakeCaller, count_rows, grown

Limit = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def limit() -> Limit:
    """Settings with limits in the test broker's store."""
    return lambda **limits: override_settings(
        COMPUTE={"RATE": {"STORE_URL": os.environ["CELERY_BROKER_URL"], **limits}}
    )


def fresh(prefix: str) -> dict[str, tuple[int, int]]:
    return {f"compute:test:{prefix}:{uuid4().hex}": (60, 5)}


@pytest.fixture
def limiter() -> rate.Limiter:
    found = rate.Limiter(os.environ["CELERY_BROKER_URL"])
    # A machine that runs every test at once may be slower than a call would wait.
    found._store.connection_pool.connection_kwargs.update(socket_timeout=5, socket_connect_timeout=5)
    return found


@pytest.mark.django_db
def test_a_call_over_the_limit_is_429_with_when_to_come_back(caller: Caller, limit: Limit) -> None:
    before = count_rows()
    with limit(PRINCIPAL_PER_MINUTE=1, PRINCIPAL_BURST=2):
        answers = [caller.probe("peek") for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert [each["RateLimit-Remaining"] for each in answers] == ["1", "0", "0"]
    assert {each["RateLimit-Limit"] for each in answers} == {"2"}
    assert 1 <= int(answers[2]["Retry-After"]) <= 60
    assert json.loads(answers[2].content)["code"] == "RATE_LIMITED"
    assert grown(before) == {}


@pytest.mark.django_db
def test_callers_of_one_tenant_share_its_limit_and_no_other(make_caller: MakeCaller, limit: Limit) -> None:
    tenant = uuid4().hex
    one, two = (make_caller(tenant, *EVERYTHING, name=name) for name in ("one", "two"))
    other = make_caller("t1", *EVERYTHING, name="other")
    with limit(TENANT_PER_MINUTE=1, TENANT_BURST=2):
        statuses = [
            each.post("plugins/probe/probes/peek", {"tenantId": tenant}).status_code for each in (one, two, one)
        ]
        assert statuses == [200, 200, 429]
        assert other.probe("peek").status_code == 200


@pytest.mark.django_db
def test_without_limits_there_are_no_headers(caller: Caller) -> None:
    assert "RateLimit-Limit" not in caller.probe("peek")


@pytest.mark.django_db
@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "redis://:wrong@127.0.0.1:1/0"])
def test_a_store_that_is_gone_limits_nothing_and_is_left_alone(caller: Caller, url: str) -> None:
    with override_settings(COMPUTE={"RATE": {"STORE_URL": url, "PRINCIPAL_PER_MINUTE": 1}}):
        begun = time.monotonic()
        assert [caller.probe("peek").status_code for _ in range(5)] == [200] * 5
        assert time.monotonic() - begun < 4
        assert rate.take(Principal(id="x", kind="token")) is None


def test_a_bucket_refills_steadily(limiter: rate.Limiter) -> None:
    buckets = {f"compute:test:refill:{uuid4().hex}": (600, 1)}
    assert limiter.take(buckets)[0]  # type: ignore[index]
    deadline = time.monotonic() + 5
    while not (limiter.take(buckets) or (False,))[0]:
        assert time.monotonic() < deadline, "600 a minute is one in a tenth of a second"
        time.sleep(0.02)


def test_at_once_no_more_pass_than_the_burst(limiter: rate.Limiter) -> None:
    buckets = fresh("burst")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: limiter.take(buckets), range(40)))
    assert sum(answer is not None and answer[0] for answer in answers) == 5


def test_a_call_that_one_bucket_refuses_takes_nothing_of_the_other(limiter: rate.Limiter) -> None:
    scarce, ample = f"compute:test:{uuid4().hex}", f"compute:test:{uuid4().hex}"
    both = {scarce: (1, 1), ample: (1, 10)}
    assert [limiter.take(both)[0] for _ in range(4)] == [True, False, False, False]  # type: ignore[index]
    assert limiter.take({ample: (1, 10)})[1].remaining == 8  # type: ignore[index]


def test_buckets_do_not_outlive_their_use(limiter: rate.Limiter) -> None:
    buckets = fresh("expiry")
    limiter.take(buckets)
    (key,) = buckets
    store: Any = redis.Redis.from_url(os.environ["CELERY_BROKER_URL"])
    assert 0 < store.pttl(key) <= 6_000
