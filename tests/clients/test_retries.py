"""Which calls are made again, under which key, and for how long; against a server that answers by a script."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from better_compute.client import ApiError, ConnectionLost, Options, Transport, attempts
from tests.clients.scripted import OK, Scripted, Server, problem


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(attempts, "FIRST_WAIT_S", 0.001)
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def transport(server: Server) -> Iterator[Transport]:
    with Transport(server.url, "token", retries=2) as made:
        yield made


@pytest.mark.parametrize(
    "first",
    [
        (0, {}, None),
        (502, {}, b"<html>bad gateway</html>"),
        problem("STORAGE_BUSY", 503),
        problem("RATE_LIMITED", 429),
        problem("CONFLICT", 409, reason="IDEMPOTENCY_KEY_BUSY"),
    ],
    ids=["lost", "gateway", "busy", "limited", "twin"],
)
def test_what_passes_is_tried_again_under_the_same_key(server: Server, transport: Transport, first: Scripted) -> None:
    server.script = [first, OK]
    assert transport.call("a.b", {}) == {"done": True}
    keys = [headers["Idempotency-Key"] for headers in server.seen]
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 412, 423, 500])
def test_what_stays_is_not_tried_again(server: Server, transport: Transport, status: int) -> None:
    server.script = [problem("SOMETHING_NEW", status)]
    with pytest.raises(ApiError) as caught:
        transport.call("a.b", {})
    assert (caught.value.code, len(server.seen)) == ("SOMETHING_NEW", 1)


def test_retries_end(server: Server, transport: Transport) -> None:
    server.script = [(0, {}, None)] * 3
    with pytest.raises(ConnectionLost, match=r"a\.b"):
        transport.call("a.b", {})
    assert len(server.seen) == 3


def test_the_servers_wait_is_kept(server: Server, transport: Transport) -> None:
    server.script = [(503, {"Retry-After": "1"}, {"code": "STORAGE_BUSY", "status": 503}), OK]
    began = time.monotonic()
    transport.call("a.b", {})
    assert time.monotonic() - began >= 1


def test_a_wait_that_is_too_long_is_the_callers_affair(server: Server, transport: Transport) -> None:
    server.script = [(429, {"Retry-After": "3600"}, {"code": "RATE_LIMITED", "status": 429})]
    with pytest.raises(ApiError) as caught:
        transport.call("a.b", {})
    assert caught.value.retry_after_s == 3600


def test_a_redirect_is_not_followed_with_the_token(server: Server, transport: Transport) -> None:
    server.script = [(302, {"Location": "http://elsewhere.invalid/"}, b"")]
    with pytest.raises(ApiError):
        transport.call("a.b", {})
    assert len(server.seen) == 1


def test_each_call_has_a_key_of_its_own_and_a_query_has_none(server: Server, transport: Transport) -> None:
    server.script = [OK] * 4
    transport.call("a.b", {})
    transport.call("a.b", {})
    transport.call("a.b", {}, mutation=False)
    transport.call("a.b", {}, options=Options(dry_run=True))
    keys = [headers.get("Idempotency-Key") for headers in server.seen]
    assert keys[0] != keys[1]
    assert keys[2:] == [None, None]
