"""The OpenAPI document is valid, says everything that is hosted, and says it truly."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Annotated, Any

import msgspec
import pytest
from django.core.management import call_command
from openapi_spec_validator import OpenAPIV31SpecValidator

from better_compute import Input, Meta, Resource, registry
from better_compute.envelope import codec, examples, openapi
from tests.envelope.conftest import Caller


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(openapi.encode())
    return found


def test_it_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_it_has_every_method_plugins_included(document: dict[str, Any]) -> None:
    assert set(document["paths"]) == {f"/{path}" for path in registry.current().methods}
    poke = document["paths"]["/plugins/acme/widgets/poke"]
    assert set(poke) == {"post"}
    assert poke["post"]["x-compute"] == {"module": "acme", "action": "compute:acme:poke", "kind": "mutation"}
    assert set(document["paths"]["/plugins/acme/widgets/count"]) == {"get", "post"}


def test_operation_ids_are_unique(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


def test_a_query_lists_its_fields_as_parameters(document: dict[str, Any]) -> None:
    (parameter,) = document["paths"]["/plugins/acme/widgets/count"]["get"]["parameters"]
    assert (parameter["name"], parameter["in"], parameter["required"]) == ("tenantId", "query", True)
    assert parameter["schema"]["pattern"] == r"^[A-Za-z0-9._:-]{1,128}$(?!\n)"


def test_inputs_refuse_unknown_fields(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["PokeInput"]["additionalProperties"] is False
    assert set(document["components"]["schemas"]["PokeInput"]["required"]) == {"tenantId", "widgetId"}


def test_every_method_shows_an_input_that_it_takes_and_an_answer_as_it_gives(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        spec = registry.current().methods[path[1:]]
        if spec.module == "probe":
            continue
        given = item["post"]["requestBody"]["content"]["application/json"]["example"]
        spec.resource(codec.decode_body(spec.input_type, json.dumps(given).encode()))
        for operation in item.values():
            answer = operation["responses"]["200"]["content"]["application/json"]["example"]
            msgspec.json.decode(json.dumps(answer), type=spec.output_type)
        for parameter in item.get("get", {}).get("parameters", ()):
            assert not parameter["required"] or "example" in parameter, (path, parameter["name"])


def test_what_a_field_names_as_its_example_is_shown_and_what_fits_nothing_is_left_out() -> None:
    class Odd(Input):
        size: Annotated[str, Meta(pattern=r"^[0-9]+U$(?!\n)", examples=["42U"])]

    class Odder(Input):
        size: Annotated[str, Meta(pattern=r"^[0-9]+U$(?!\n)")]

    def shown(struct: type[Input]) -> Any:
        spec = dataclasses.replace(
            registry.current().methods["plugins/acme/widgets/poke"],
            input_type=struct,
            resource=lambda _: Resource("tenant", "t1"),
        )
        (schema,), components = msgspec.json.schema_components([struct])
        return examples.of_input(spec, schema, components)

    assert (shown(Odd), shown(Odder)) == ({"size": "42U"}, None)


def test_the_headers_and_refusals_of_an_answer_are_named(document: dict[str, Any]) -> None:
    poke = document["paths"]["/plugins/acme/widgets/poke"]["post"]["responses"]
    assert {"Idempotency-Replayed", "Dry-Run", "RateLimit-Limit"} <= set(poke["200"]["headers"])
    listed = document["paths"]["/work/list"]["get"]["responses"]
    assert ("410" in listed, "410" in poke) == (True, False)
    for response in document["components"]["responses"].values():
        example = response["content"]["application/problem+json"]["example"]
        assert set(document["components"]["schemas"]["Problem"]["required"]) <= set(example)


def test_links_lead_from_what_one_method_answers_to_what_another_takes(document: dict[str, Any]) -> None:
    def link(path: str, name: str, verb: str = "post") -> Any:
        return document["paths"][path][verb]["responses"]["200"]["links"][name]

    assert link("/tokens/create", "revoke") == {
        "operationId": "tokens.revoke",
        "requestBody": {"tokenId": "$response.body#/token/id"},
    }
    assert link("/grants/list", "get", "get") == {
        "operationId": "grants.get.get",
        "parameters": {"query.grantId": "$response.body#/items/0/id"},
    }
    assert link("/plugins/acme/widgets/poke", "count")["parameters"] == {"query.tenantId": "$request.body#/tenantId"}


def test_every_link_leads_to_an_operation_and_gives_what_it_takes(document: dict[str, Any]) -> None:
    operations = {each["operationId"]: each for path in document["paths"].values() for each in path.values()}
    for operation in operations.values():
        for link in operation["responses"]["200"].get("links", {}).values():
            target = operations[link["operationId"]]
            names = {f"query.{each['name']}" for each in target.get("parameters", ()) if "name" in each}
            assert set(link.get("parameters", {})) <= names
            if "requestBody" in link:
                ref = target["requestBody"]["content"]["application/json"]["schema"]["$ref"]
                fields = document["components"]["schemas"][ref.rpartition("/")[2]]["properties"]
                assert set(link["requestBody"]) <= set(fields)


@pytest.mark.django_db
def test_every_refusal_that_it_names_is_a_problem_document(caller: Caller, document: dict[str, Any]) -> None:
    responses = document["paths"]["/plugins/acme/widgets/poke"]["post"]["responses"]
    answers = [
        caller.post("plugins/acme/widgets/poke", {}),
        caller.client.post("/api/compute/plugins/acme/widgets/poke", {}, content_type="application/json"),
        caller.post("plugins/acme/widgets/poke", {"tenantId": "t2", "widgetId": "w"}),
        caller.client.put("/api/compute/plugins/acme/widgets/poke"),
    ]
    for answer in answers:
        assert str(answer.status_code) in responses
        assert answer["Content-Type"] == "application/problem+json"
        required = document["components"]["schemas"]["Problem"]["required"]
        assert set(required) <= set(json.loads(answer.content))


@pytest.mark.django_db
def test_it_is_served_to_any_caller_and_to_nobody_else(caller: Caller, document: dict[str, Any]) -> None:
    response = caller.get("openapi.json")
    assert response.status_code == 200
    assert json.loads(response.content) == document
    assert caller.client.get("/api/compute/openapi.json").status_code == 401
    refused = caller.post("openapi.json")
    assert (refused.status_code, refused["Allow"]) == (405, "GET")


def test_the_command_writes_it(document: dict[str, Any]) -> None:
    out = io.StringIO()
    call_command("compute_openapi", stdout=out)
    assert json.loads(out.getvalue()) == document


def test_it_is_made_anew_for_other_settings_and_modules_only(settings: Any) -> None:
    first = openapi.encode()
    assert openapi.encode() is first
    settings.COMPUTE = {**settings.COMPUTE, "BASE_URL": "https://api.example"}
    assert b"https://api.example/api/compute" in openapi.encode()
    with registry.override(*registry.current().modules[:1]):
        assert b"/plugins/acme" not in openapi.encode()
    assert b"/plugins/acme" in openapi.encode()
