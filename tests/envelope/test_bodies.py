"""Bodies are refused by their headers first, then by their bytes, and nothing is written."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory, override_settings

from better_compute import ComputeError
from better_compute.contract.errors import Violation
from better_compute.envelope import http
from better_compute.envelope.problem import encode
from better_compute.registry import current
from tests.envelope.conftest import Caller, count_rows, grown

pytestmark = pytest.mark.django_db

PATH = "plugins/probe/probes/write"


def problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    found: dict[str, Any] = json.loads(response.content)
    assert (found["status"], found["code"]) == (status, code)
    assert found["detail"]
    return found


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b"{", ""),
        (b"[]", ""),
        (b'{"tenantId": "t1", "unknown": 1}', "/unknown"),
        (b'{"tenantId": 1}', "/tenantId"),
        (b'{"tenantId": "t1\\n"}', "/tenantId"),
        ('{"tenantId": "t\uff11"}'.encode(), "/tenantId"),
        (b'{"tenantId": "t1", "widgetId": "\\u0000"}', "/widgetId"),
        (b'{"tenantId": "t1", "extra": "\\ud800"}', "/extra"),
        (b'{"tenantId": "t1", "extra": [{"a": "\\udc00x"}]}', "/extra/0/a"),
        (b'{"tenantId": "t1", "extra": ' + b"[" * 70 + b"]" * 70 + b"}", ""),
        (b"", "/tenantId"),
    ],
)
def test_a_bad_body_is_400_with_a_pointer_and_writes_nothing(caller: Caller, body: bytes, pointer: str) -> None:
    before = count_rows()
    found = problem(caller.post(PATH, body), 400, "INVALID_INPUT")
    assert found["errors"][0]["pointer"] == pointer
    assert grown(before) == {}


def test_a_pattern_that_does_not_match_is_told_with_field_value_and_pattern(caller: Caller) -> None:
    found = problem(caller.post(PATH, {"tenantId": "t 1"}), 400, "INVALID_INPUT")
    assert found["errors"] == [
        {
            "pointer": "/tenantId",
            "detail": "Expected `str` matching regex '^[A-Za-z0-9._:-]{1,128}$', got 't 1'.",
        }
    ]


@pytest.mark.parametrize(
    "body",
    [
        b'{"tenantId": "t1", "' + b"u" * 900_000 + b'": 1}',
        b'{"tenantId": "' + b"!" * 900_000 + b'"}',
        b'{"tenantId": "t1", "extra": {"' + b"k" * 900_000 + b'": "\\ud800"}}',
    ],
    ids=["field", "value", "key"],
)
def test_a_long_value_is_not_sent_back_whole(caller: Caller, body: bytes) -> None:
    response = caller.post(PATH, body)
    problem(response, 400, "INVALID_INPUT")
    assert len(response.content) < 3_000
    assert "\u2026" in response.content.decode()


def test_a_long_path_is_not_sent_back_whole(caller: Caller) -> None:
    response = caller.post("x" * 5_000)
    problem(response, 404, "NOT_FOUND")
    assert len(response.content) < 1_500


def test_what_a_method_says_is_bounded_too() -> None:
    error = ComputeError("CONFLICT", "x" * 10_000, violations=[Violation("/" + "y" * 10_000, "z" * 10_000)])
    assert len(encode(error, "r1")) < 3_000


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json"]
)
def test_only_json_is_taken(caller: Caller, media_type: str) -> None:
    response = caller.client.generic(
        "POST",
        f"/api/compute/{PATH}",
        b'{"tenantId": "t1"}',
        content_type=media_type,
        headers={"Authorization": f"Bearer {caller.secret}"},
    )
    problem(response, 415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(("coding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 200), ("", 200)])
def test_a_body_in_a_coding_is_refused_before_it_is_read_as_json(caller: Caller, coding: str, status: int) -> None:
    response = caller.client.generic(
        "POST",
        f"/api/compute/{PATH}",
        b'{"tenantId": "t1"}',
        content_type="application/json",
        headers={"Authorization": f"Bearer {caller.secret}", "Content-Encoding": coding},
    )
    assert response.status_code == status
    if status == 415:
        refused = problem(response, 415, "UNSUPPORTED_MEDIA_TYPE")
        assert refused["detail"] == f"The body's Content-Encoding is {coding!r}."
        assert refused["mend"] == "Send the body as it is, without Content-Encoding."


def test_json_with_a_charset_is_json(caller: Caller) -> None:
    response = caller.client.generic(
        "POST",
        f"/api/compute/{PATH}",
        b'{"tenantId": "t1"}',
        content_type="application/json; charset=utf-8",
        headers={"Authorization": f"Bearer {caller.secret}"},
    )
    assert response.status_code == 200


def test_a_body_over_the_limit_is_413_by_its_header(caller: Caller) -> None:
    body = b'{"tenantId": "t1", "extra": "' + b"x" * 1_048_576 + b'"}'
    problem(caller.post(PATH, body), 413, "PAYLOAD_TOO_LARGE")


@override_settings(COMPUTE={"CALL": {"MAX_BODY_BYTES": 18}})
def test_the_limit_is_a_setting_and_the_last_byte_counts(caller: Caller) -> None:
    assert caller.post(PATH, b'{"tenantId": "t1"}').status_code == 200
    problem(caller.post(PATH, b'{"tenantId":  "t1"}'), 413, "PAYLOAD_TOO_LARGE")


class Endless:
    """A stream that never ends, and counts what is read of it."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "the whole stream was asked for"
        self.taken += size
        return b" " * size


def test_no_more_than_the_limit_is_read_whatever_the_header_says(caller: Caller) -> None:
    stream = Endless()
    request = RequestFactory().post("/", b"{}", content_type="application/json")
    request._stream = stream  # type: ignore[attr-defined]
    request.META["HTTP_AUTHORIZATION"] = f"Bearer {caller.secret}"
    response = http.serve(current().methods[PATH], request)
    problem(response, 413, "PAYLOAD_TOO_LARGE")
    assert stream.taken == 1_048_577


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "+5", "٣", "1 2", "9" * 25])
def test_a_length_that_is_no_number_is_411(caller: Caller, length: str) -> None:
    response = caller.client.post(
        f"/api/compute/{PATH}",
        b"{}",
        content_type="application/json",
        CONTENT_LENGTH=length,
        headers={"Authorization": f"Bearer {caller.secret}"},
    )
    problem(response, 411, "LENGTH_REQUIRED")


def test_a_body_without_a_length_is_411(caller: Caller) -> None:
    response = caller.post(PATH, b'{"tenantId": "t1"}', **{"Transfer-Encoding": "chunked"})
    problem(response, 411, "LENGTH_REQUIRED")


def test_a_method_without_input_needs_no_body(installation: Caller) -> None:
    response = installation.client.generic(
        "POST", "/api/compute/system/version", headers={"Authorization": f"Bearer {installation.secret}"}
    )
    assert response.status_code == 200


def test_limits_are_judged_before_the_token(caller: Caller) -> None:
    response = caller.client.post(f"/api/compute/{PATH}", b"x" * 1_100_000, content_type="application/json")
    problem(response, 413, "PAYLOAD_TOO_LARGE")


def test_the_token_is_judged_before_the_body(caller: Caller) -> None:
    response = caller.client.post(f"/api/compute/{PATH}", b"{", content_type="application/json")
    problem(response, 401, "UNAUTHENTICATED")


def test_a_body_shorter_than_its_length_is_refused_though_it_is_sound_json(caller: Caller) -> None:
    before = count_rows()
    request = RequestFactory().post("/", b"{}", content_type="application/json")
    request._stream = io.BytesIO(b'{"tenantId": "t1"}')  # type: ignore[attr-defined]
    request.META.update(CONTENT_LENGTH="40", HTTP_AUTHORIZATION=f"Bearer {caller.secret}")
    problem(http.serve(current().methods[PATH], request), 400, "INVALID_INPUT")
    assert grown(before) == {}


class Trickle(io.BytesIO):
    """A stream that hands out one byte a read."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(1)


def test_a_body_that_arrives_piece_by_piece_is_read_to_its_end(caller: Caller) -> None:
    request = RequestFactory().post("/", b"{}", content_type="application/json")
    request._stream = Trickle(b'{"tenantId": "t1"}')  # type: ignore[attr-defined]
    request.META.update(CONTENT_LENGTH="18", HTTP_AUTHORIZATION=f"Bearer {caller.secret}")
    assert http.serve(current().methods[PATH], request).status_code == 200


def test_a_body_that_a_middleware_read_is_still_served(caller: Caller) -> None:
    request = RequestFactory().post("/", b'{"tenantId": "t1"}', content_type="application/json")
    request.META["HTTP_AUTHORIZATION"] = f"Bearer {caller.secret}"
    assert request.body
    assert http.serve(current().methods[PATH], request).status_code == 200
