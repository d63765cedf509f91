"""A running server, a caller who may do everything, and an input for every hosted method."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth import get_user_model

from better_compute.envelope import clients, openapi, tokens

TYPESCRIPT = Path(__file__).parents[2] / "clients" / "typescript"
COMPILER = TYPESCRIPT / "node_modules" / ".bin" / "tsc"

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


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the TypeScript client as compiled from what is hosted here."""
    if not COMPILER.exists() or shutil.which("node") is None:
        if os.environ.get("COMPUTE_TEST_ALL"):
            pytest.fail("the TypeScript compiler is missing; run make clients", pytrace=False)
        pytest.skip("needs the TypeScript compiler; run make clients")
    folder = tmp_path_factory.mktemp("typescript")
    for path in (TYPESCRIPT / "tsconfig.json", TYPESCRIPT / "package.json", *TYPESCRIPT.glob("*.mjs")):
        shutil.copy(path, folder)
    (folder / "generated").mkdir()
    source = clients.typescript(json.loads(openapi.encode()))
    (folder / "generated" / "client.ts").write_text(source, encoding="utf-8")
    compiled = subprocess.run([COMPILER, "--project", "."], cwd=folder, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stdout
    return folder


def node(built: Path, program: str, *arguments: str) -> Any:
    """Run a program beside the compiled client, and read the JSON that it prints."""
    command = ["node", program, *arguments]
    ran = subprocess.run(command, cwd=built, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def with_typescript(built: Path, url: str, token: str, asked: list[dict[str, Any]], **settings: Any) -> Any:
    """What came of each call of ``asked`` (method, input, options) through the TypeScript client."""
    file = built / f"cases-{uuid.uuid4().hex}.json"
    file.write_text(json.dumps({"settings": settings, "cases": asked}), encoding="utf-8")
    return node(built, "outcomes.mjs", url, token, file.name)


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
