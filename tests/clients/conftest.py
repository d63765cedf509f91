"""A running server, a caller who may do everything, and an input for every hosted method."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth import get_user_model

from better_compute.envelope import clients, openapi, tokens

#: Texts to try for a pattern.
TEXTS = (
    "t1",
    "acme.widgets",
    "00000000-0000-4000-8000-000000000001",
    "compute:acme:read",
    "user/1",
    "service/ci",
    "role/reader",
)
#: Parts of an answer that differ from call to call.
MOVING = re.compile(r"At$|^id$|^secret$|^token|^hint$|^findings$|^ok$")


@dataclass(frozen=True)
class Case:
    """One method with an input that its schema allows."""

    method: str
    mutation: bool
    input: dict[str, Any]


@dataclass(frozen=True)
class Running:
    """Where the server answers, and a token."""

    url: str
    token: str

    def outcome(self, case: Case) -> dict[str, Any]:
        """What a plain HTTP call answers; of a mutation, what it would answer."""
        answer = httpx.post(
            f"{self.url}/api/compute/{case.method.replace('.', '/')}",
            params={"dryRun": "true"} if case.mutation else {},
            json=case.input,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
        )
        body = answer.json()
        return {"code": body["code"]} if answer.status_code != 200 else {"answer": body}


def still(value: Any) -> Any:
    """An answer without what differs from call to call."""
    if isinstance(value, dict):
        return {name: still(each) for name, each in value.items() if not MOVING.search(name)}
    return [still(each) for each in value] if isinstance(value, list) else value


@pytest.fixture
def running(live_server: Any) -> Running:
    """The server that runs, and a superuser's token of the installation."""
    user = get_user_model().objects.create_superuser("clara")
    secret, _ = tokens.create(user=user, label="clients", tenant_id=None)
    return Running(live_server.url, secret)


def cases() -> list[Case]:
    """An input for every hosted method."""
    document = json.loads(openapi.encode())
    schemas = document["components"]["schemas"]
    found = []
    for path, item in document["paths"].items():
        operation = item["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        mutation = operation["x-compute"]["kind"] == "mutation"
        found.append(Case(path[1:].replace("/", "."), mutation, sample(schema, schemas)))
    return found


def sample(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """A value that the schema allows, with what is required and nothing more."""
    if "$ref" in schema:
        return sample(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return sample(schema["anyOf"][0], schemas)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: sample(schema["properties"][name], schemas) for name in schema.get("required", ())}
        case "array":
            return [sample(schema["items"], schemas)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "string":
            pattern = schema.get("pattern")
            return next(text for text in TEXTS if pattern is None or re.search(pattern, text))
    return None


@pytest.fixture
def generated(tmp_path: Path) -> Any:
    """The generated Python client, imported."""
    path = tmp_path / "generated_compute_client.py"
    path.write_text(clients.python(json.loads(openapi.encode())), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its types refer to one another by name.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[path.stem]
