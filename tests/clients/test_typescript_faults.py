"""The TypeScript client against a server that answers by a script: hostile answers, cancelled calls, watches."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import node
from tests.clients.scripted import OK, Scripted, Server, drip, endless, problem
from tests.clients.test_hostile import HEAD
from tests.clients.test_watch import page

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def keys(server: Server) -> list[str]:
    """The Idempotency-Key of each request."""
    return [
        next(value for name, value in headers.items() if name.lower() == "idempotency-key") for headers in server.seen
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((200, {"Content-Type": "text/html"}, b"<html>please log in</html>"), "instead of JSON"),
        ((200, {}, b'{"done": tr'), "no JSON"),
        ((200, {}, b""), "no JSON"),
        ((200, {"Content-Encoding": "gzip"}, gzip.compress(b"0" * 10_000_000)), "more than 100000 bytes"),
        (
            (200, {}, drip(endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\n    \r\n" * 9999), 0)),
            "more than",
        ),
    ],
    ids=["html", "truncated", "empty", "packed", "endless"],
)
def test_what_is_no_answer_of_ours_is_refused_at_once(server: Server, built: Path, answer: Scripted, told: str) -> None:
    server.script = [answer, OK]
    met = node(built, "hostile.mjs", server.url, "call")
    assert met["error"] == "BadAnswer"
    assert told in met["told"]
    assert len(server.seen) == 1


def test_nobody_who_answers_is_told_with_the_cause(server: Server, built: Path) -> None:
    server.stop()
    met = node(built, "hostile.mjs", server.url, "call")
    assert met["error"] == "ConnectionLost"
    assert "ECONNREFUSED" in met["told"]


@pytest.mark.parametrize(
    "first",
    [
        (0, {}, None),
        (502, {}, b"<html>bad gateway</html>"),
        problem("STORAGE_BUSY", 503),
        (504, {}, b""),
        (200, {"Content-Length": "100"}, b'{"done": true}'),
    ],
    ids=["lost", "gateway", "busy", "late", "cut"],
)
def test_what_passes_is_tried_again_under_the_same_key(server: Server, built: Path, first: Scripted) -> None:
    server.script = [first, OK]
    assert node(built, "hostile.mjs", server.url, "call") == {"answer": {"done": True}}
    first_key, second_key = keys(server)
    assert first_key == second_key


def test_an_answer_that_drips_is_given_up_and_asked_for_again(server: Server, built: Path) -> None:
    # On a machine that stalls, later attempts may take too long as well.
    server.script = [(200, {}, drip(endless(HEAD, b"X"), 0.05)), *[OK] * 60]
    assert node(built, "hostile.mjs", server.url, "patient", "1000") == {"answer": {"done": True}}
    assert len(server.seen) >= 2
    assert len(set(keys(server))) == 1


def test_a_machine_that_stalls_is_waited_for(server: Server, built: Path) -> None:
    server.stall_s = 1.5
    server.script = [(502, {}, b"<html>bad gateway</html>"), OK]
    assert node(built, "hostile.mjs", server.url, "call") == {"answer": {"done": True}}
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_takes_the_token_nowhere(server: Server, built: Path, status: int) -> None:
    elsewhere = Server()
    server.script = [(status, {"Location": f"{elsewhere.url}/x"}, b""), OK]
    met = node(built, "hostile.mjs", server.url, "call")
    elsewhere.stop()
    assert met["error"] == "ApiError"
    assert "redirects to" in met["told"]
    assert (len(server.seen), elsewhere.seen) == (1, [])


def test_an_abort_ends_the_wait_for_another_attempt(server: Server, built: Path) -> None:
    server.script = [(503, {"Retry-After": "20"}, {"code": "STORAGE_BUSY"}), OK]
    met = node(built, "hostile.mjs", server.url, "abort")
    assert met["error"] == "AbortError"
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("what", "script", "shown"),
    [
        ("get", [(200, {}, {"state": state}) for state in ("new", "new", "old", "gone")], ["new", "old", "gone"]),
        (
            "list",
            [
                page("1", "2", cursor="c"),
                page("3"),
                page("1", "3"),
                page("1", "3", state="old"),
                page("3", state="old"),
            ],
            ["added 1", "added 2", "added 3", "gone 2", "changed 1", "changed 3", "gone 1"],
        ),
        (
            "resume",
            [page("1", "2"), page("1", "3")],
            {"before": ["added 1"], "after": ["added 3"], "foreign": "RangeError", "rubbish": "RangeError"},
        ),
        ("stop", [(200, {}, {"state": "new"})], ["new"]),
    ],
)
def test_a_watch_shows_what_changes(server: Server, built: Path, what: str, script: list[Scripted], shown: Any) -> None:
    server.script = script
    assert node(built, "hostile.mjs", server.url, what) == shown


def test_a_watch_that_is_aborted_throws_and_one_out_of_patience_too(server: Server, built: Path) -> None:
    server.script = [(200, {}, {"state": "new"})]
    assert node(built, "hostile.mjs", server.url, "cancel")["told"] == "cancelled after new"
    server.script = [(0, {}, None)] * 200
    assert node(built, "hostile.mjs", server.url, "patience")["error"] == "ConnectionLost"
