"""What no caller should send, and what the field's tables of errors say of it, row by row."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse

from better_compute import registry
from better_compute.envelope import openapi, tokens
from example_project.acme_widgets.models import Widget
from tests.clients.conftest import sample
from tests.envelope.conftest import EVERYTHING, Caller, MakeCaller, audit_rows, count_rows, grown, make_user

pytestmark = pytest.mark.django_db

PATH = "plugins/probe/probes/write"
TESTS = Path(__file__).resolve().parents[1]
MIB = 1_048_576


def filled(before: bytes, unit: bytes, after: bytes) -> bytes:
    """As many units as a body may hold."""
    return before + unit * ((MIB - len(before) - len(after)) // len(unit)) + after


#: Bodies as large as they may be, each dear to somebody who reads it carelessly.
BOMBS = {
    "open brackets": b"[" * MIB,
    "open objects": filled(b"", b'{"a":', b""),
    "deep and closed": filled(b"", b"[", b"")[: MIB // 2] + b"]" * (MIB // 2),
    "empty arrays": filled(b'{"tenantId":"t1","extra":[[]', b",[]", b"]}"),
    "empty objects": filled(b'{"tenantId":"t1","extra":[{}', b",{}", b"]}"),
    "one name again and again": filled(b'{"tenantId":"t1","extra":{"a":1', b',"a":1', b"}}"),
    "escapes": filled(b'{"tenantId":"t1","extra":"', rb"\u0041", b'"}'),
    "escaped quotes": filled(b'{"tenantId":"t1","extra":"', rb"\"", b'"}'),
    "backslashes": filled(b'{"tenantId":"t1","extra":"', rb"\\", b'"}'),
    "an open string of backslashes": filled(b'{"tenantId":"', rb"\\", b""),
    "pairs of surrogates": filled(b'{"tenantId":"t1","extra":"', rb"\ud83d\ude00", b'"}'),
    "lone surrogates": filled(b'{"tenantId":"t1","extra":"', rb"\ud83d", b'"}'),
    "escaped NULs": filled(b'{"tenantId":"t1","extra":"', rb"\u0000", b'"}'),
    "digits": filled(b'{"tenantId":"t1","extra":', b"9", b"}"),
    "decimals": filled(b'{"tenantId":"t1","extra":0.', b"9", b"}"),
    "a long exponent": filled(b'{"tenantId":"t1","extra":1e', b"9", b"}"),
    "numbers like integers": filled(b'{"tenantId":86.0,"extra":[1.0', b",1.0", b"]}"),
    "white space": filled(b"", b" ", b"{}"),
    "unknown names": filled(b'{"tenantId":"t1"', b',"b":1', b"}"),
    "a long text for a pattern": filled(b'{"tenantId":"', b"a", b'"}'),
    "a long text": filled(b'{"tenantId":"t1","extra":"', b"a", b'"}'),
}

#: Values that a field of any type may be sent, with whether one of type Any may take it.
NUMBERS = {
    "1e400": False, "-1e400": False, "1e-400": True, "-0.0": True, "9223372036854775808": True,
    "18446744073709551616": None, "1" + "0" * 400: None, "NaN": False, "Infinity": False, "-Infinity": False,
    "0x10": False, "01": False, "+1": False, "1.": False, ".5": False, "1e": False, "1_000": False,
    "\u0661": False,
}  # fmt: skip


def bounded(response: HttpResponse) -> int:
    """A refusal is a short problem document, never a defect."""
    if response.status_code != 200:
        assert response["Content-Type"] == "application/problem+json"
        assert len(response.content) < 4_096
    assert response.status_code < 500, response.content
    return response.status_code


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_answered_in_good_time(caller: Caller, bomb: bytes) -> None:
    begun = time.process_time()
    status = bounded(caller.post(PATH, bomb))
    assert status in (200, 400)
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(("number", "taken"), NUMBERS.items())
def test_a_number_that_is_none_is_refused(caller: Caller, number: str, taken: bool | None) -> None:
    status = bounded(caller.post(PATH, f'{{"tenantId":"t1","extra":{number}}}'.encode()))
    assert taken is None or (status == 200) is taken
    assert bounded(caller.post(PATH, f'{{"tenantId":{number}}}'.encode())) == 400


@pytest.mark.parametrize(
    "value",
    [
        "\u0000", "a\u0000b", "\ud800", "\udfff\ud800", "t1\n", "t1\r\nX: y", "t1\u2028", "\u202et1", "\ufefft1",
        "t\uff11", "../t1", "..%2ft1", "%00", "t1;DROP TABLE x", "' OR '1'='1", "${jndi:ldap://x}", "{{7*7}}", "%s%n",
        "a" * 129, "", " ", "\t",
    ],
)  # fmt: skip
def test_a_tenant_that_can_be_none_is_refused_in_body_and_query(caller: Caller, value: str) -> None:
    before = count_rows()
    assert bounded(caller.post(PATH, json.dumps({"tenantId": value}).encode())) == 400
    query = value.encode("utf-8", "surrogatepass")
    escaped = "".join(f"%{byte:02x}" for byte in query)
    assert bounded(caller.get(f"plugins/probe/probes/peek?tenantId={escaped}")) == 400
    assert grown(before) == {}


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-Request-Id", "traceparent", "X-Forwarded-For", "Accept"])
@pytest.mark.parametrize(
    "value", ["a\r\nSet-Cookie: x=y", "a\nb", "a\x00b", "\x7f", "é" * 50, "a" * 10_000, "%0d%0aX: y", "<script>"]
)
def test_a_header_adds_no_other_and_is_sent_back_only_when_it_is_sound(caller: Caller, header: str, value: str) -> None:
    response = caller.post(PATH, {"tenantId": "t1"}, **{header: value})
    assert bounded(response) in (200, 400)
    assert "Set-Cookie" not in response.headers
    assert all("\n" not in told and "\r" not in told for told in response.headers.values())
    assert value not in response.headers.values()


@pytest.mark.parametrize(
    "name", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"]
)
def test_a_header_makes_no_other_request_of_it(caller: Caller, name: str) -> None:
    before = count_rows()
    response = caller.get("plugins/probe/probes/peek?tenantId=t1", **{name: f"/api/compute/{PATH}"})
    assert json.loads(response.content) == {"value": ["t1", None]}
    assert caller.get(f"{PATH}?tenantId=t1", **{name: "POST"}).status_code == 405
    assert grown(before) == {}


@pytest.mark.parametrize("path", [PATH, f"{PATH}?dryRun=true", "plugins/probe/probes/peek"])
def test_more_parameters_than_django_reads_are_refused(caller: Caller, path: str) -> None:
    before = count_rows()
    path += ("&" if "?" in path else "?") + "&".join(f"a{number}=1" for number in range(1_500))
    answer = caller.get(path) if "peek" in path else caller.post(path, {"tenantId": "t1"})
    assert bounded(answer) == 400
    assert json.loads(answer.content)["code"] == "INVALID_INPUT"
    assert grown(before) == {}


def test_a_refusal_of_a_long_id_leaves_a_short_record(caller: Caller) -> None:
    for id in ("w" * 900_000, "w" * 899_999 + "x", "\U0001f98a" * 1_025):
        assert bounded(caller.post("plugins/probe/probes/touch", {"widgetId": id})) == 404
    assert bounded(caller.post("plugins/probe/probes/touch", {"widgetId": "w" * 1_024})) == 404
    found = [row["resource_id"] for row in audit_rows()]
    assert [len(id) <= 1_024 for id in found] == [True] * 4
    assert len(set(found)) == 4
    assert found.count("w" * 1_024) == 1
    assert max(len(bytes(row["canonical"])) for row in audit_rows()) < 8_192


def test_headers_that_name_somebody_else_change_nothing(caller: Caller) -> None:
    answer = caller.post("plugins/probe/probes/peek", {"tenantId": "t2"}, **{
        "X-Tenant-Id": "t2", "X-Forwarded-User": "root", "Remote-User": "root", "X-User": "root", "X-Principal": "root",
    })  # fmt: skip
    assert answer.status_code == 404


MARK = "only-tenant-two-knows"


@pytest.fixture
def theirs(db: None) -> dict[str, str]:
    """Records of tenant t2, whose names nobody in t1 may read, and their ids."""
    Widget.objects.create(id=f"w-{MARK}", tenant_id="t2")
    user = make_user(f"u-{MARK}")
    _, token = tokens.create(user=user, label=MARK, tenant_id="t2")
    return {"tenant": "t2", "widget": f"w-{MARK}", "token": str(token.pk), "user": f"user/{user.pk}"}


def positions(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a text stands in an input."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from positions(each, (*path, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from positions(each, (*path, index))


def placed(value: Any, path: tuple[Any, ...], text: str) -> Any:
    """The input with another text at one position."""
    if not path:
        return text
    if isinstance(value, dict):
        return {name: placed(each, path[1:], text) if name == path[0] else each for name, each in value.items()}
    return [placed(each, path[1:], text) if index == path[0] else each for index, each in enumerate(value)]


def every(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """An input with every field that its schema knows, the optional ones too, where a text can stand."""
    found = sample(schema, schemas)
    properties = schemas[schema["$ref"].rpartition("/")[2]].get("properties", {}) if "$ref" in schema else {}
    for name, each in properties.items():
        alternatives = each.get("anyOf", [each])
        if name not in found and any(one.get("type") == "string" for one in alternatives):
            found[name] = "t1"
    return found


def of_tenant_two() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id::text FROM plg_acme_widget WHERE tenant_id = 't2' UNION ALL"
            " SELECT id::text || coalesce(revoked_at::text, '') FROM compute_tokens WHERE tenant_id = 't2' UNION ALL"
            " SELECT key FROM compute_work WHERE key LIKE '%t2%' UNION ALL"
            " SELECT subject FROM compute_outbox WHERE tenant_id = 't2' ORDER BY 1"
        )
        return list(cursor.fetchall())


def test_no_id_of_another_tenant_opens_anything_in_any_position(
    make_caller: MakeCaller, theirs: dict[str, str]
) -> None:
    caller = make_caller("t1", name="rex", is_superuser=True)
    document = json.loads(openapi.encode())
    schemas = document["components"]["schemas"]
    stands = of_tenant_two()
    tried = reached = 0
    for path, item in document["paths"].items():
        if path.endswith(("/endTheTransaction", "/escape")):
            continue  # They would end the test's own transaction.
        schema = item["post"]["requestBody"]["content"]["application/json"]["schema"]
        given = every(schema, schemas)
        for position in positions(given):
            for id in theirs.values():
                # What would end or stop t1 itself is only tried, else every later call would be refused for that.
                tries = "?dryRun=true" if path.startswith("/tenants/") else ""
                response = caller.post(f"{path[1:]}{tries}", placed(given, position, id))
                tried += 1
                said = response.content.decode().replace(id, "")
                assert MARK not in said, (path, position, id)
                assert response.status_code != 500 or path.startswith("/plugins/probe/"), (path, position, id, said)
                reached += response.status_code == 200
    assert tried > 100
    assert reached > 10, "where nothing is answered nothing is shown to be kept apart"
    assert of_tenant_two() == stands


def test_no_id_of_another_tenant_opens_anything_in_header_or_query(caller: Caller, theirs: dict[str, str]) -> None:
    stands = of_tenant_two()
    for id in theirs.values():
        for header in ("Idempotency-Key", "X-Request-Id", "X-Tenant-Id", "Cookie", "traceparent"):
            response = caller.post("plugins/acme/widgets/count", {"tenantId": "t1"}, **{header: id})
            assert MARK not in response.content.decode().replace(id, "")
        assert caller.get(f"plugins/acme/widgets/count?tenantId=t1&tenantId={id}").status_code == 400
        answer = caller.post(f"plugins/acme/widgets/count?tenantId={id}", {"tenantId": "t1"})
        # A POST is asked by its body alone, so that no log of addresses holds an input.
        assert answer.status_code == 400, answer.content
    assert of_tenant_two() == stands


def test_a_cursor_and_an_idempotency_key_of_another_tenant_are_nobodys(make_caller: MakeCaller) -> None:
    one, two = (make_caller(tenant, *EVERYTHING, name=f"of-{tenant}") for tenant in ("t1", "t2"))
    key = {"Idempotency-Key": "shared"}
    assert one.post(PATH, {"tenantId": "t1", "widgetId": "a"}, **key).status_code == 200
    answer = two.post(PATH, {"tenantId": "t2", "widgetId": "b"}, **key)
    assert (answer.status_code, json.loads(answer.content)) == (200, {"value": "t2"})
    assert "Idempotency-Replayed" not in answer


#: Rows of the tables that issue 5 names, and the test that claims each. Codes of what is not ours are left out.
ROWS = {
    # control-planes.md, section 1
    "stale generation is 409": "envelope/test_generations.py::test_another_generation_is_refused",
    "null generation must not exist yet": "envelope/test_generations.py::test_another_generation_is_refused",
    "same key, same body, same answer": (
        "envelope/test_idempotency.py::test_a_repeated_call_answers_the_same_and_has_its_effect_once"
    ),
    "same key, other body is 409": "envelope/test_idempotency.py::test_the_same_key_with_another_input_is_refused",
    "400 with a JSON pointer": "envelope/test_bodies.py::test_a_bad_body_is_400_with_a_pointer_and_writes_nothing",
    "401": "envelope/test_identity.py::test_a_token_that_is_no_good_is_401_and_nothing_is_recorded",
    "403": "envelope/test_authorization.py::test_without_the_permission_a_call_is_denied_and_writes_one_audit_record",
    "404 also in another tenant": (
        "envelope/test_authorization.py::test_another_tenants_record_reads_like_a_missing_one"
    ),
    "409, 410, 412, 423 with their codes": (
        "envelope/test_transaction.py::test_every_code_a_method_raises_reaches_the_caller_as_its_status"
    ),
    "410 for a cursor": "envelope/test_pages.py::test_a_cursor_expires",
    "413": "envelope/test_bodies.py::test_a_body_over_the_limit_is_413_by_its_header",
    "429 with Retry-After": "envelope/test_rate.py::test_a_call_over_the_limit_is_429_with_when_to_come_back",
    "503 with Retry-After": (
        "envelope/test_transaction.py::test_a_database_error_is_told_by_its_state_and_never_by_its_text"
    ),
    "dry run": "envelope/test_idempotency.py::test_it_makes_every_check",
    "fencing": "store/test_leases.py::test_a_fence_that_meets_a_takeover_under_way_waits_and_refuses",
    # sibling.md, 2.2
    "INVALID_INPUT": "envelope/test_codec.py::test_a_violation_is_reported_with_its_json_pointer",
    "INVALID_CONFIG at construction": "registry/test_settings.py::*",
    "UNAUTHENTICATED": "envelope/test_identity.py::test_a_revoked_token_is_refused_from_the_next_call_on",
    "ACCESS_DENIED": "envelope/test_authorization.py::test_a_user_without_permissions_may_do_nothing",
    "UNTRUSTED_ORIGIN and CSRF_REJECTED": (
        "envelope/test_identity.py::test_a_session_that_is_refused_for_its_csrf_token_or_origin_is_recorded_as_denied"
    ),
    "METHOD_NOT_ALLOWED": "envelope/test_routes.py::test_a_wrong_verb_is_405_with_what_is_allowed",
    "CONFLICT for 23505": "envelope/test_transaction.py::test_a_unique_violation_names_the_columns_and_no_value",
    "TRANSACTION_ABORTED: a swallowed error dooms": (
        "envelope/test_transaction.py::test_a_failing_method_leaves_only_the_record_of_its_failure"
    ),
    "RESOURCE_IN_USE": "envelope/test_transaction.py::test_every_code_a_method_raises_reaches_the_caller_as_its_status",
    "PAYLOAD_TOO_LARGE": "envelope/test_live.py::test_a_body_of_100_mb_is_refused_without_reading_it",
    "RATE_LIMITED": "envelope/test_rate.py::test_a_call_over_the_limit_is_429_with_when_to_come_back",
    "INTERNAL_ERROR with a generic text": (
        "envelope/test_transaction.py::test_an_unknown_defect_is_told_by_its_request_id_and_logged_under_it"
    ),
    "STORAGE_BUSY for 40001, 40P01, 55P03, 57014": (
        "envelope/test_transaction.py::test_a_database_error_is_told_by_its_state_and_never_by_its_text"
    ),
    "TENANT_INACTIVE": "modules/tenancy/test_calls.py::*",
    # the hostile list
    "JSON bombs": "envelope/test_bad_input.py::test_a_bomb_is_answered_in_good_time",
    "1e400 and huge integers": "envelope/test_bad_input.py::test_a_number_that_is_none_is_refused",
    "lone surrogates and NUL": (
        "envelope/test_bad_input.py::test_a_tenant_that_can_be_none_is_refused_in_body_and_query"
    ),
    "header injection": (
        "envelope/test_bad_input.py::test_a_header_adds_no_other_and_is_sent_back_only_when_it_is_sound"
    ),
    "header injection on the wire": "envelope/test_live.py::test_a_header_cannot_be_injected_through_the_request_id",
    "method override": "envelope/test_bad_input.py::test_a_header_makes_no_other_request_of_it",
    "path tricks": "envelope/test_routes.py::test_what_is_no_route_is_a_problem_document",
    "cross-tenant ids": "envelope/test_bad_input.py::test_no_id_of_another_tenant_opens_anything_in_any_position",
    "malformed tokens": "envelope/test_identity.py::test_a_token_that_is_no_good_is_401_and_nothing_is_recorded",
    "forged tokens": "modules/iam/test_oidc.py::test_no_forged_token_comes_in",
    "lying and missing lengths": "envelope/test_live.py::test_two_lengths_or_a_length_and_chunks_are_refused",
}


@pytest.mark.parametrize("row", ROWS)
def test_every_row_of_the_tables_has_its_test(row: str) -> None:
    file, _, name = ROWS[row].partition("::")
    tree = ast.parse(TESTS.joinpath(file).read_text(encoding="utf-8"))
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in found or (name == "*" and any(each.startswith("test_") for each in found))


def test_the_probe_is_hosted_where_ids_are_tried() -> None:
    assert any(path.startswith("plugins/probe/") for path in registry.current().methods)
