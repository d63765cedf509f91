"""What is sent beside the input is taken as it is meant, or refused: never overlooked, never half of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponse

from tests.envelope.conftest import Caller, count_rows, grown

pytestmark = pytest.mark.django_db

WRITE = "/api/compute/plugins/probe/probes/write"
PEEK = "/api/compute/plugins/probe/probes/peek"


def send(caller: Caller, verb: str, path: str, body: bytes = b"", **environ: Any) -> HttpResponse:
    """Send bytes with headers as a WSGI server would name them."""
    # Django's client leaves the type of an empty body out.
    environ = {"CONTENT_TYPE": environ.get("content_type", ""), **environ}
    return caller.client.generic(
        verb, path, body, environ.pop("content_type", ""), HTTP_AUTHORIZATION=f"Bearer {caller.secret}", **environ
    )


def told(response: HttpResponse, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    found: dict[str, Any] = json.loads(response.content)
    return found


@pytest.mark.parametrize(
    "asked", [{"CONTENT_LENGTH": "2"}, {"CONTENT_LENGTH": "x"}, {"HTTP_TRANSFER_ENCODING": "chunked"}]
)
@pytest.mark.parametrize("path", [f"{PEEK}?tenantId=t1", "/api/compute/openapi.json", "/api/compute/reference"])
def test_a_body_of_a_get_is_refused_and_not_overlooked(caller: Caller, path: str, asked: dict[str, str]) -> None:
    found = told(send(caller, "GET", path, content_type="application/json", **asked), 400)
    assert (found["code"], found["mend"]) == ("INVALID_INPUT", "Put the input into the address, or send it with POST.")
    assert next(iter(asked.values())) in found["detail"]


@pytest.mark.parametrize("asked", [{}, {"CONTENT_LENGTH": "0"}, {"CONTENT_LENGTH": ""}])
def test_a_get_without_a_byte_of_body_is_answered(caller: Caller, asked: dict[str, str]) -> None:
    assert send(caller, "GET", f"{PEEK}?tenantId=t1", content_type="application/json", **asked).status_code == 200


def test_a_body_whose_length_http_2_does_not_state_is_411(caller: Caller) -> None:
    """Without a length Django reads none of it, and the input would be an empty one."""
    before = count_rows()
    asked = {"SERVER_PROTOCOL": "HTTP/2", "CONTENT_LENGTH": ""}
    assert told(send(caller, "POST", WRITE, b'{"tenantId":"t1"}', **asked), 411)["code"] == "LENGTH_REQUIRED"
    asked["CONTENT_LENGTH"] = "0"
    assert told(send(caller, "POST", WRITE, **asked), 400)["errors"][0]["pointer"] == "/tenantId"
    assert grown(before) == {}


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json;charset=utf-8",
        "application/json ; charset=UTF-8",
        'Application/JSON; Charset="Utf-8"',
        "application/json;",
    ],
)
def test_json_in_utf_8_is_taken_however_it_is_written(caller: Caller, media_type: str) -> None:
    assert send(caller, "POST", WRITE, b'{"tenantId":"t1"}', content_type=media_type).status_code == 200


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json; charset=utf-16",
        "application/json; charset=latin1",
        "application/json; charset=rot13",
        "application/json; charset=nonsense",
        "application/json; charset=utf-8; charset=utf-16",
        "application/json; profile=x",
        "application/json; charset",
        "application/json, application/json",
        "application/json, text/plain",
        "application/json" + " ;" * 4_000,
        "application/jsonx",
    ],
)
def test_json_with_another_charset_or_parameter_is_415(caller: Caller, media_type: str) -> None:
    before = count_rows()
    found = told(send(caller, "POST", WRITE, b'{"tenantId":"t1"}', content_type=media_type), 415)
    assert found["detail"].startswith(f"The body's Content-Type is '{media_type[:60]}")
    assert (
        found["mend"] == "Send JSON in UTF-8, with `Content-Type: application/json` and no parameter but charset=utf-8."
    )
    assert grown(before) == {}


def test_a_content_type_that_no_server_passes_on_is_not_called_missing(caller: Caller) -> None:
    found = told(send(caller, "POST", WRITE, b'{"tenantId":"t1"}'), 415)
    assert found["detail"] == "The body has no Content-Type, or one with characters other than visible ASCII."


@pytest.mark.parametrize("charset", ["utf-16", "utf-7", "cp037", "nonsense"])
def test_no_charset_changes_how_an_address_is_read(caller: Caller, charset: str) -> None:
    """One that decodes no text, as rot13, ends in Django before any view is found."""
    asked = {"content_type": f"application/json; charset={charset}"}
    answer = told(send(caller, "GET", f"{PEEK}?tenantId=%741", **asked), 200)
    assert answer["value"][0] == "t1"
    assert told(send(caller, "POST", f"{WRITE}?dryRun=%74rue", **asked), 400)["errors"][0]["pointer"] == "/tenantId"


@pytest.mark.parametrize("key", ["k1,k1", "k1, k2", '"k1","k1"', "k1,"])
def test_two_idempotency_keys_are_none(caller: Caller, key: str) -> None:
    """As servers join two headers of one name, so that a comma in one key is refused with them."""
    before = count_rows()
    found = told(send(caller, "POST", f"{WRITE}", b'{"tenantId":"t1"}', content_type="application/json",
                      HTTP_IDEMPOTENCY_KEY=key), 400)  # fmt: skip
    assert found["detail"] == f"The Idempotency-Key {key!r} holds a comma: the header was given twice, or is no key."
    assert found["mend"] == "Send one Idempotency-Key of 1 to 255 visible ASCII characters without commas or quotes."
    assert grown(before) == {}


@pytest.mark.parametrize("key", ["", '""'])
def test_an_empty_idempotency_key_is_told_as_what_it_may_be(caller: Caller, key: str) -> None:
    found = told(send(caller, "POST", f"{WRITE}", b'{"tenantId":"t1"}', content_type="application/json",
                      HTTP_IDEMPOTENCY_KEY=key), 400)  # fmt: skip
    assert found["detail"] == "The Idempotency-Key is empty, or holds characters other than visible ASCII."


@pytest.mark.parametrize(
    ("credential", "detail"),
    [
        ("Bearer a,Bearer b", "The Authorization header was given more than once."),
        ("Basic eDp5,Bearer b", "The Authorization header was given more than once."),
        ("Bearer a, bearer b", "The Authorization header was given more than once."),
        ("", "The Authorization header is empty, or holds characters other than visible ASCII."),
        (" ", "The Authorization header is empty, or holds characters other than visible ASCII."),
        ("Bearer a,b", "The bearer token is malformed."),
    ],
)
def test_a_credential_that_is_none_is_told_as_it_was_sent(caller: Caller, credential: str, detail: str) -> None:
    response = caller.client.post(
        PEEK, {"tenantId": "t1"}, content_type="application/json", headers={"Authorization": credential}
    )
    assert told(response, 401)["detail"] == detail


@pytest.mark.parametrize("credential", ["", "Basic eDp5,Bearer b"])
def test_no_session_stands_in_for_a_credential_that_did_not_arrive(caller: Caller, credential: str) -> None:
    from tests.envelope.conftest import make_user

    caller.client.force_login(make_user("selma", is_superuser=True))
    assert caller.client.get(f"{PEEK}?tenantId=t1").status_code == 200
    response = caller.client.get(f"{PEEK}?tenantId=t1", headers={"Authorization": credential})
    assert told(response, 401)["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("text", ["%ff", "t%C3", "%C0%80", "%ED%A0%80", "\xff"])
def test_an_address_that_is_not_utf_8_is_refused_and_not_mended(caller: Caller, text: str) -> None:
    response = send(caller, "GET", PEEK, QUERY_STRING=f"tenantId=t1&extra={text}")
    found = told(response, 400)
    assert found["detail"] == "The query string is not UTF-8."


def test_a_replacement_character_that_was_meant_is_taken(caller: Caller) -> None:
    response = send(caller, "GET", PEEK, QUERY_STRING="tenantId=t1&extra=%EF%BF%BD")
    assert told(response, 200)["value"] == ["t1", "\ufffd"]


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match", "If-Unmodified-Since"])
def test_a_change_on_a_condition_that_nobody_judges_is_refused(caller: Caller, name: str) -> None:
    before = count_rows()
    found = told(caller.post("plugins/probe/probes/write", {"tenantId": "t1"}, **{name: '"5"'}), 400)
    assert found["detail"] == f"{name} is not judged here: an answer has no ETag."
    assert "generation" in found["mend"]
    assert grown(before) == {}
    assert caller.post("plugins/probe/probes/peek", {"tenantId": "t1"}, **{name: '"5"'}).status_code == 200


@pytest.mark.parametrize("asked", ["dryRun=true", "dryRun=nonsense", "tenantId=t1"])
def test_the_address_of_a_querys_post_asks_for_nothing(caller: Caller, asked: str) -> None:
    found = told(caller.post(f"plugins/probe/probes/peek?{asked}", {"tenantId": "t1"}), 400)
    assert found["detail"] == f"The address of this POST asks for '{asked.partition('=')[0]}'."
