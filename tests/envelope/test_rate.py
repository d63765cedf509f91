"""Rate limits hold per principal and tenant, in the store's own time, and never stand in the way when it is gone."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
import redis
from django.test import override_settings

from better_compute import ComputeError, Principal, conf
from better_compute.access import Token
from better_compute.envelope import rate
from tests.envelope.conftest import EVERYTHING, Caller, MakeCaller, count_rows, grown

Limit = Callable[..., AbstractContextManager[Any]]


def patient(limiter: rate.Limiter) -> rate.Limiter:
    """A limiter that waits longer than a call would: a machine that runs every test at once may be slow."""
    limiter._store.connection_pool.connection_kwargs.update(socket_timeout=5, socket_connect_timeout=5)
    deadline = time.monotonic() + 10
    while not limiter._try():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return limiter


@pytest.fixture
def limit() -> Limit:
    """Settings with limits in the test broker's store."""
    rate._limiter.cache_clear()
    patient(rate._limiter(os.environ["CELERY_BROKER_URL"]))
    return lambda **limits: override_settings(
        COMPUTE={"RATE": {"STORE_URL": os.environ["CELERY_BROKER_URL"], **limits}}
    )


def fresh(prefix: str) -> dict[str, tuple[int, int]]:
    return {f"compute:test:{prefix}:{uuid4().hex}": (60, 5)}


@pytest.fixture
def limiter() -> rate.Limiter:
    return patient(rate.Limiter(os.environ["CELERY_BROKER_URL"]))


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
    # Fresh ones: the store keeps what others took, in an earlier run too.
    tenant, neighbour = uuid4().hex, uuid4().hex
    one, two = (make_caller(tenant, *EVERYTHING, name=name) for name in ("one", "two"))
    other = make_caller(neighbour, *EVERYTHING, name="other")
    with limit(TENANT_PER_MINUTE=1, TENANT_BURST=2):
        statuses = [
            each.post("plugins/probe/probes/peek", {"tenantId": tenant}).status_code for each in (one, two, one)
        ]
        assert statuses == [200, 200, 429]
        assert other.post("plugins/probe/probes/peek", {"tenantId": neighbour}).status_code == 200


@pytest.mark.django_db
def test_without_limits_there_are_no_headers(caller: Caller) -> None:
    assert "RateLimit-Limit" not in caller.probe("peek")


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port that takes no connection and refuses none."""
    with socket.socket() as listening, ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            full = waiting.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(100)
        yield listening.getsockname()[1]


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["127.0.0.1:1", ":wrong@127.0.0.1:1", "{black_hole}", "{silent}", "nowhere.invalid"])
def test_a_store_that_is_gone_limits_nothing_and_is_left_alone(
    caller: Caller, black_hole: int, silent: int, host: str
) -> None:
    rate._limiter.cache_clear()
    place = host.format(black_hole=f"127.0.0.1:{black_hole}", silent=f"127.0.0.1:{silent}")
    with override_settings(COMPUTE={"RATE": {"STORE_URL": f"redis://{place}/0", "PRINCIPAL_PER_MINUTE": 1}}):
        answers = [caller.probe("peek") for _ in range(5)]
        assert [each.status_code for each in answers] == [200] * 5
        assert "RateLimit-Limit" not in answers[0]
        begun = time.monotonic()
        assert [rate.take(Principal(id="x", kind="token")) for _ in range(1_000)] == [None] * 1_000
        assert time.monotonic() - begun < 1_000 * rate.STORE_TIMEOUT_S / 5


def test_calls_at_once_wait_for_a_black_hole_once_and_never_again(black_hole: int) -> None:
    limiter = rate.Limiter(f"redis://127.0.0.1:{black_hole}/0")

    def timed(_: int) -> float:
        begun = time.monotonic()
        assert limiter.take(fresh("hole")) is None
        return time.monotonic() - begun

    with ThreadPoolExecutor(20) as pool:
        waits = sorted(pool.map(timed, range(200)))
    assert waits[-1] < rate.STORE_TIMEOUT_S + 1
    # Those that came while nothing was known; each of the 20 threads waits once or twice.
    assert sum(wait > rate.STORE_TIMEOUT_S / 2 for wait in waits) <= 60


def test_a_name_that_takes_long_to_look_up_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(30) and [])
    limiter = rate.Limiter("redis://slow.invalid:6379/0")
    begun = time.monotonic()
    assert [limiter.take(fresh("name")) for _ in range(50)] == [None] * 50
    assert time.monotonic() - begun < rate.FIRST_TRY_S + 1
    answered.set()


def test_a_store_that_comes_back_is_counted_in_again(monkeypatch: pytest.MonkeyPatch, limiter: rate.Limiter) -> None:
    assert limiter.take(fresh("back"))
    limiter._rest(OSError())
    assert limiter.take(fresh("back")) is None
    limiter._rests_until = 0.1
    deadline = time.monotonic() + 10
    while not limiter.take(fresh("back")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.django_db
def test_a_store_that_answers_nonsense_limits_nothing(caller: Caller, limit: Limit) -> None:
    store: Any = redis.Redis.from_url(os.environ["CELERY_BROKER_URL"])
    store.set(f"compute:rate:principal:token/{Token.objects.get().pk}", "no hash", ex=60)
    with limit(PRINCIPAL_PER_MINUTE=100):
        assert caller.probe("peek").status_code == 200


class Liar(StreamRequestHandler):
    """A store that is there, greets in RESP3, and answers every script with the server's ``lie``."""

    def handle(self) -> None:
        while head := self.rfile.readline():
            words = [self.rfile.read(int(self.rfile.readline()[1:]) + 2).strip() for _ in range(int(head[1:]))]
            answers = {b"HELLO": b"%1\r\n+proto\r\n:3\r\n", b"EVALSHA": self.server.lie}  # type: ignore[attr-defined]
            self.wfile.write(answers.get(words[0], b"+OK\r\n"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "lie",
    [
        b"*4\r\n:1\r\n,inf\r\n,nan\r\n:3\r\n",
        b"*4\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
        b"*4\r\n:0\r\n_\r\n_\r\n_\r\n",
        b":1\r\n",
        b"_\r\n",
        b"%1\r\n+a\r\n:1\r\n",
        b"lies\r\n",
    ],
)
def test_a_store_that_lies_limits_nothing(caller: Caller, lie: bytes) -> None:
    with ThreadingTCPServer(("127.0.0.1", 0), Liar) as store, ThreadPoolExecutor(1) as pool:
        store.daemon_threads = True
        store.lie = lie  # type: ignore[attr-defined]
        serving = pool.submit(store.serve_forever, 0.05)
        url = f"redis://127.0.0.1:{store.server_address[1]}/0"
        rate._limiter.cache_clear()
        patient(rate._limiter(url))
        with override_settings(COMPUTE={"RATE": {"STORE_URL": url, "PRINCIPAL_PER_MINUTE": 1}}):
            answers = [caller.probe("peek") for _ in range(3)]
        rate._limiter(url)._store.close()
        store.shutdown()
        serving.result()
    assert [each.status_code for each in answers] == [200] * 3
    assert "RateLimit-Limit" not in answers[0]


@pytest.mark.parametrize("url", ["localhost:6379", "http://x", "redis://x:port/0", "redis://x:99999/0", "redis://[::1"])
def test_an_address_that_is_none_is_a_configuration_error_without_its_password(url: str) -> None:
    with (
        override_settings(COMPUTE={"RATE": {"STORE_URL": url}}),
        pytest.raises(ComputeError, match="STORE_URL") as told,
    ):
        conf.current()
    assert url not in str(told.value)


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
