"""What is told of an exception holds no secret, whichever way the secret was written down."""

from __future__ import annotations

import pytest

from better_compute import describe_failure

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


def test_a_line_of_any_size_is_read_up_to_a_bound() -> None:
    assert len(describe_failure(RuntimeError("a-" * 5_000_000))) == 400
