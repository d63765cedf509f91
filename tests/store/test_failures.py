"""What is told of an exception holds no secret, whichever way the secret was written down."""

from __future__ import annotations

import pytest

from better_compute import describe_failure
from better_compute.store.failures import trace_failure
from better_compute.store.session import Unanswered

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Authorization: Bearer hunter2", "Authorization: ..."),
        ("sent Authorization: Digest username=a, response=hunter2", "sent Authorization: ..."),
        ("{'Authorization': 'Bearer hunter2', 'Host': 'a'}", "{'Authorization': ..., 'Host': 'a'}"),
        ('{"authorization": "Basic hunter2"}', '{"authorization": ...}'),
        ("{b'authorization': b'Bearer hunter2'}", "{b'authorization': ...}"),
        ("Cookie: a=b; sessionid=hunter2", "Cookie: ..."),
        ("401 for bearer hunter2 at /x", "401 for bearer ... at /x"),
        ("password = 'my hunter2 pass' refused", "password = ... refused"),
        (r"password='it\'s hunter2' refused", "password=... refused"),
        ("password: hunter2", "password: ..."),
        ("db_password=hunter2 host=db", "db_password=... host=db"),
        ('{"client_secret": "hun\\"hunter2"}', '{"client_secret": ...}'),
        ("X-Api-Key: hunter2", "X-Api-Key: ..."),
        ("pwd=hunter2;", "pwd=..."),
        ("passphrase => hunter2", "passphrase => ..."),
        ("https://a.example/?token=hunter2&x=1", "https://a.example/?token=..."),
        ("postgresql://u:p@ss/hunter2@db:5432/x refused", "postgresql://...@db:5432/x refused"),
        ("'redis://:hunter2@cache:6379' and 'http://b/'", "'redis://...@cache:6379' and 'http://b/'"),
        ("bct_hunter2hunter2 is unknown", "... is unknown"),
        ("bci_hunter2hunter2 is unknown", "... is unknown"),
        ("eyJhbGciOiJub25lIn0.hunter2.sig is expired", "... is expired"),
        ("-----BEGIN RSA PRIVATE KEY----- hunter2", "-----BEGIN PRIVATE KEY----- ..."),
    ],
)
def test_no_secret_is_told(said: str, told: str) -> None:
    assert describe_failure(RuntimeError(said)) == f"RuntimeError: {told}"


@pytest.mark.parametrize(
    "said",
    [
        "no node answers on https://bmc.example/redfish",
        "column 'tokens' does not exist",
        "the secretary is out",
    ],
)
def test_what_holds_no_secret_is_told_whole(said: str) -> None:
    assert describe_failure(RuntimeError(said)) == f"RuntimeError: {said}"


def test_a_connection_that_was_given_up_is_told_in_full() -> None:
    assert describe_failure(Unanswered("has not answered for 1.5 s")) == (
        "Unanswered (SQLSTATE 08006): has not answered for 1.5 s"
    )


def test_a_line_of_any_size_is_read_up_to_a_bound() -> None:
    assert len(describe_failure(RuntimeError("a-" * 5_000_000))) == 400


def failing_twice() -> None:
    try:
        raise KeyError("token=hunter2")
    except KeyError as error:
        try:
            raise ValueError("password=hunter2") from error
        except ValueError:
            raise ExceptionGroup("secret: hunter2", [RuntimeError("api_key=hunter2")])  # noqa: B904 - its context counts


def test_a_stack_holds_every_place_and_no_text_of_an_exception() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        failing_twice()
    told = trace_failure(caught.value)
    assert SECRET not in told.replace('"token=hunter2"', "").replace('"password=hunter2"', "").replace(
        '"secret: hunter2"', ""
    ).replace('"api_key=hunter2"', "")
    assert told.count("in failing_twice") == 3
    places = [
        told.index(name) for name in ("KeyError: 'token=...", "ValueError: password=...", "ExceptionGroup: secret")
    ]
    assert places == sorted(places)
    assert "with RuntimeError: api_key=..." in told


def test_a_chain_that_holds_itself_ends() -> None:
    error = RuntimeError("x")
    error.__context__ = other = RuntimeError("y")
    other.__context__ = error
    assert trace_failure(error).count("RuntimeError") == 2
