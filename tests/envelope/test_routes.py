"""Routes come from the registry, and everything below the prefix is answered in JSON."""

from __future__ import annotations

import json

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from tests.envelope.conftest import Caller, count_rows, grown

pytestmark = pytest.mark.django_db


def test_a_plugin_method_answers_post_below_its_id(caller: Caller) -> None:
    response = caller.post("plugins/acme/widgets/poke", {"tenantId": "t1", "widgetId": "w-1"})
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    assert json.loads(response.content) == {"poked": "w-1"}


def test_a_query_answers_get_with_its_input_in_the_query_string(caller: Caller) -> None:
    response = caller.get("plugins/acme/widgets/count?tenantId=t1")
    assert (response.status_code, json.loads(response.content)) == (200, {"count": 0})


def test_a_query_answers_post_too(caller: Caller) -> None:
    assert caller.post("plugins/acme/widgets/count", {"tenantId": "t1"}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "",
        "nothing",
        "system",
        "system/",
        "system/selfcheck",
        "system/self_check",
        "system/version/",
        "system//version",
        "/system/version",
        "plugins/acme/widgets",
        "plugins/acme/widgets/poke/",
        "plugins/acme/widgets/Poke",
        "plugins/acme/widgets/__init__",
        "plugins/acme/widgets/dispatch",
        "plugins/acme/../acme/widgets/poke",
        "plugins/acme/widgets/poke%00",
        "plugins/acme/widgets/poke%0a",
        "widgets/poke",
        "acme/widgets/poke",
        "plugins/acme/widgets/p%6fke%2f",
        "%2e%2e/admin",
    ],
)
def test_what_is_no_route_is_a_problem_document(caller: Caller, path: str) -> None:
    before = count_rows()
    response = caller.post(path, {"tenantId": "t1", "widgetId": "w"})
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert json.loads(response.content)["code"] == "NOT_FOUND"
    assert grown(before) == {}


@pytest.mark.parametrize("verb", ["get", "put", "patch", "delete", "head", "options", "trace"])
def test_a_wrong_verb_is_405_with_what_is_allowed(caller: Caller, verb: str) -> None:
    response = getattr(caller.client, verb)("/api/compute/plugins/acme/widgets/poke")
    assert response.status_code == 405
    assert response["Allow"] == "POST"
    response = caller.client.put("/api/compute/plugins/acme/widgets/count")
    assert response["Allow"] == "GET, POST"
    assert json.loads(response.content)["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-Method-Override"])
def test_no_header_overrides_the_verb(caller: Caller, header: str) -> None:
    assert caller.get("plugins/acme/widgets/poke?tenantId=t1&widgetId=w", **{header: "POST"}).status_code == 405
    assert caller.get("plugins/acme/widgets/poke?_method=POST").status_code == 405


@pytest.mark.parametrize("name", ["get", "post"])
def test_a_method_may_be_named_like_a_verb(caller: Caller, name: str) -> None:
    assert json.loads(caller.probe(name).content) == {"value": {"get": "got", "post": "posted"}[name]}


def test_every_method_can_be_reversed(caller: Caller) -> None:
    assert reverse("plugins.acme.widgets.poke") == "/api/compute/plugins/acme/widgets/poke"
    assert reverse("system.selfCheck") == "/api/compute/system/selfCheck"


@pytest.mark.parametrize("path", ["plugins/acme/widgets/count?tenantId=t1", "nothing", "system/version"])
def test_every_answer_forbids_storing_and_sniffing(caller: Caller, path: str) -> None:
    for response in (caller.get(path), caller.client.get(f"/api/compute/{path}")):
        assert response["Cache-Control"] == "no-store"
        assert response["X-Content-Type-Options"] == "nosniff"


def test_a_sound_request_id_is_echoed_and_stands_in_the_problem(caller: Caller) -> None:
    response = caller.post("nothing", **{"X-Request-Id": "abc.DEF:1_2-3"})
    assert response["X-Request-Id"] == "abc.DEF:1_2-3"
    assert json.loads(response.content)["instance"] == "abc.DEF:1_2-3"


@pytest.mark.parametrize("given", ["", "a b", "a\r\nX: y", "x" * 129, "é", "a\n", "<script>"])
def test_an_unsound_request_id_is_replaced(caller: Caller, given: str) -> None:
    response = caller.client.get("/api/compute/system/version", HTTP_X_REQUEST_ID=given)
    assert response["X-Request-Id"] != given
    assert len(response["X-Request-Id"]) == 32


@override_settings(APPEND_SLASH=True)
def test_no_path_is_redirected(client: Client) -> None:
    assert client.get("/api/compute/nothing").status_code == 404


def test_the_accept_header_changes_nothing(caller: Caller) -> None:
    response = caller.get("plugins/acme/widgets/count?tenantId=t1&format=xml", Accept="text/html")
    assert response.status_code == 400
    response = caller.get("plugins/acme/widgets/count?tenantId=t1", Accept="text/html")
    assert response["Content-Type"] == "application/json"


@override_settings(ROOT_URLCONF="example_project.urls")
@pytest.mark.parametrize("path", ["plugins/acme/widgets/poke", "openapi.json", "no/such/method"])
def test_a_host_that_is_not_served_is_a_problem_document(caller: Caller, path: str) -> None:
    answer = caller.post(path, {}, Host="elsewhere.example")
    problem = answer.json()
    assert answer.status_code == problem["status"] == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["X-Request-Id"] == problem["instance"]
    assert (problem["code"], problem["detail"], problem["mend"]) == (
        "INVALID_INPUT",
        "The Host header names no host that this server answers for.",
        "Call an address whose host stands in the server's ALLOWED_HOSTS.",
    )


@override_settings(ROOT_URLCONF="example_project.urls")
@pytest.mark.parametrize("path", ["/admin/", "/nowhere"])
def test_a_host_that_is_not_served_is_djangos_page_elsewhere(client: Client, path: str) -> None:
    answer = client.get(path, headers={"Host": "elsewhere.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/html; charset=utf-8")
