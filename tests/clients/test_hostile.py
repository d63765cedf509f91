"""What a proxy, a captive portal or a hostile server may answer, and what a client makes of it."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from better_compute.client import ApiError, AsyncTransport, BadAnswer, ConnectionLost, Options, Transport, attempts
from tests.clients.scripted import OK, Scripted, Server, drip, endless
from tests.clients.test_python import run

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Done(msgspec.Struct):
    """What the scripted method answers."""

    done: bool


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(attempts, "FIRST_WAIT_S", 0.001)
    made = Server()
    yield made
    made.stop()


Call = Callable[..., Any]


@pytest.fixture(params=["blocking", "asyncio"])
def call(request: pytest.FixtureRequest, server: Server) -> Call:
    """Call a method through either transport."""

    def blocking(answer: Any = Any, *, calls: int = 1, **settings: Any) -> Any:
        with Transport(server.url, "secret", **settings) as transport:
            return [transport.call("a.b", {}, answer) for _ in range(calls)][-1]

    def with_asyncio(answer: Any = Any, *, calls: int = 1, **settings: Any) -> Any:
        async def calling() -> Any:
            async with AsyncTransport(server.url, "secret", **settings) as transport:
                return [await transport.call("a.b", {}, answer) for _ in range(calls)][-1]

        return run(calling())

    return blocking if request.param == "blocking" else with_asyncio


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((200, {"Content-Type": "text/html"}, b"<html>please log in</html>"), "'text/html' instead of JSON"),
        ((200, {"Content-Type": ""}, b"{}"), "instead of JSON"),
        ((200, {}, b'{"done": tr'), "not what the method declares"),
        ((200, {}, b""), "not what the method declares"),
        ((200, {}, b'{"done": "yes"}'), "Expected `bool`, got `str`"),
        ((200, {}, b'{"done": "\xff"}'), "not what the method declares"),
        ((200, {"Content-Encoding": "gzip"}, gzip.compress(b"0" * 10_000_000)), "packed as 'gzip'"),
        ((200, {"Content-Length": "99999999"}, b""), "more than 1000 bytes"),
        ((200, {}, b" " * 1001), "more than 1000 bytes"),
    ],
    ids=["html", "untyped", "truncated", "empty", "other", "no-utf8", "packed", "stated-huge", "huge"],
)
def test_what_is_no_answer_of_ours_is_refused_at_once(server: Server, call: Call, answer: Scripted, told: str) -> None:
    server.script = [answer, OK]
    with pytest.raises(BadAnswer, match=told):
        call(Done, most_answer_bytes=1000)
    assert len(server.seen) == 1


def test_an_answer_that_nests_without_an_end_is_refused(server: Server, call: Call) -> None:
    server.script = [(200, {}, b"[" * 100_000)]
    with pytest.raises(BadAnswer, match="not what the method declares"):
        call()


def test_a_body_without_an_end_is_given_up_at_the_limit(server: Server, call: Call) -> None:
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    server.script = [(200, {}, drip(endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk), 0))]
    with pytest.raises(BadAnswer, match="more than 1000000 bytes"):
        call(most_answer_bytes=1_000_000)


@pytest.mark.parametrize(
    "head",
    [HEAD + b"Content-Length: 1000\r\n\r\n", HEAD + b"X-Never-Ending: ", b""],
    ids=["body", "header", "status"],
)
def test_a_slow_drip_ends_when_the_attempts_time_is_over(server: Server, call: Call, head: bytes) -> None:
    part = b" " if head else b"H"
    server.script = [(200, {}, drip(endless(head, part), 0.05))]
    began = time.monotonic()
    with pytest.raises(ConnectionLost):
        call(timeout_s=0.5, retries=0)
    # It never ends by itself, so that the test does is the claim.
    assert time.monotonic() - began > 0.4


def test_a_slow_attempt_is_made_again(server: Server, call: Call) -> None:
    server.script = [(200, {}, drip(endless(HEAD, b"X"), 0.05)), *[OK] * 60]
    # On a machine that stalls, later attempts may take too long as well.
    assert call(timeout_s=0.5, retries=50) == {"done": True}
    keys = [headers["Idempotency-Key"] for headers in server.seen]
    assert len(keys) >= 2
    assert len(set(keys)) == 1


def test_an_answer_cut_off_is_made_again(server: Server, call: Call) -> None:
    server.script = [(200, {"Content-Length": "100"}, b'{"done": true}'), OK]
    assert call(Done).done is True
    assert len(server.seen) == 2


def test_a_redirect_takes_the_token_nowhere(server: Server, call: Call) -> None:
    elsewhere = Server()
    try:
        for status in (301, 302, 303, 307, 308):
            server.script = [(status, {"Location": f"{elsewhere.url}/api/compute/a/b"}, b"")]
            with pytest.raises(ApiError, match="redirects to"):
                call()
        assert elsewhere.seen == []
        assert len(server.seen) == 5
    finally:
        elsewhere.stop()


def test_a_refusal_cannot_say_another_status_than_it_has(server: Server, call: Call) -> None:
    server.script = [(403, {}, {"code": "ACCESS_DENIED", "status": 503}), OK]
    with pytest.raises(ApiError) as caught:
        call()
    assert caught.value.problem.status == 403
    assert len(server.seen) == 1


@pytest.mark.parametrize("wait", ["-1", "1e9", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "\u0661", "9" * 400])
def test_a_senseless_retry_after_is_passed_over(server: Server, call: Call, wait: str) -> None:
    sent = wait.encode("utf-8").decode("latin-1")
    server.script = [(503, {"Retry-After": sent}, {"code": "STORAGE_BUSY"}), OK]
    assert call() == {"done": True}


def test_a_proxy_of_the_environment_is_used_and_keeps_the_limits(
    server: Server, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    server.script = [(200, {}, drip(endless(HEAD, b"X"), 0.05)), *[OK] * 60]
    assert call(timeout_s=0.5, retries=50) == {"done": True}
    assert len(server.seen) >= 2


def test_a_cancelled_call_leaves_a_transport_that_works(server: Server) -> None:
    async def calling() -> Any:
        async with AsyncTransport(server.url, "secret") as transport:
            server.script = [(200, {}, drip(endless(HEAD, b"X"), 0.05)), OK]
            task = asyncio.create_task(transport.call("a.b", {}))
            while not server.seen:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await transport.call("a.b", {})

    assert run(calling()) == {"done": True}
    assert len(server.seen) == 2


def test_a_call_cancelled_while_it_waits_is_not_made_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_WAIT_S", 30)

    async def calling() -> None:
        async with AsyncTransport(server.url, "secret") as transport:
            server.script = [(503, {}, {"code": "STORAGE_BUSY"}), OK]
            task = asyncio.create_task(transport.call("a.b", {}))
            while not server.seen:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
            task.cancel()
            await task

    with pytest.raises(asyncio.CancelledError):
        run(calling())
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "method",
    [
        "http://localhost:9/x",
        "//localhost:9/x",
        "../admin",
        "a/b",
        "a.b?dryRun=true",
        "a.b#x",
        "a..b",
        "",
        "a.b\n",
        "é.b",
    ],
)
def test_a_name_that_is_no_methods_goes_nowhere(server: Server, method: str) -> None:
    with Transport(server.url, "secret") as transport, pytest.raises(ValueError, match="no method's name"):
        transport.call(method, {})
    assert server.seen == []


@pytest.mark.parametrize(
    "options", [{"request_id": "a\r\nX-Evil: 1"}, {"idempotency_key": "a\nb"}, {"request_id": "é"}]
)
def test_an_option_that_no_header_can_carry_is_refused_at_once(server: Server, options: dict[str, str]) -> None:
    with Transport(server.url, "secret") as transport, pytest.raises(ValueError, match="visible ASCII"):
        transport.call("a.b", {}, options=Options(**options))  # type: ignore[arg-type]
    assert server.seen == []


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("localhost:8000", "t"),
        ("ftp://localhost", "t"),
        ("http://user:password@localhost", "t"),
        ("http://localhost/?x=1", "t"),
        ("http://localhost", "a\r\nX-Evil: 1"),
        ("http://localhost", ""),
        ("http://localhost", "é"),
    ],
)
@pytest.mark.parametrize("kind", [Transport, AsyncTransport])
def test_an_address_or_a_token_that_cannot_be_is_refused_and_not_shown(kind: Any, url: str, token: str) -> None:
    with pytest.raises(ValueError, match=r"address|token") as caught:
        kind(url, token)
    assert "password" not in str(caught.value)
    assert "Evil" not in str(caught.value)
