"""Links of the OpenAPI document: which method takes what another one answered, read from the names of their fields.

A method of the same group is linked by those of its required fields that can come from elsewhere: from a field of
the answer with the same name, from the answer's ``id`` for a field that ends in ``Id``, or from the same field of the
request. What a link leaves out, its caller makes up. Nothing is written by hand, so a plugin's methods are linked too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def add(document: dict[str, Any]) -> None:
    """Add the links between the methods of each group to ``document``."""
    schemas = document["components"]["schemas"]
    groups: dict[str, list[str]] = {}
    for path in document["paths"]:
        groups.setdefault(path.rpartition("/")[0], []).append(path)
    for paths in groups.values():
        for source in paths:
            verb = _verb(document["paths"][source])
            operation = document["paths"][source][verb]
            links = {
                target.rpartition("/")[2]: link
                for target in paths
                if target != source and (link := _link(operation, verb, document["paths"][target], schemas))
            }
            if links:
                operation["responses"]["200"]["links"] = links


def _verb(item: dict[str, Any]) -> str:
    return "get" if "get" in item else "post"


def _link(source: Schema, verb: str, target: dict[str, Any], schemas: Schema) -> Schema | None:
    answer = _resolved(source["responses"]["200"]["content"]["application/json"]["schema"], schemas)
    asked = _fields(source, verb, schemas)
    to = _verb(target)
    found = {}
    for name, required in _fields(target[to], to, schemas).items():
        if not required:
            continue
        place = next(_places(name, answer, schemas), None)
        if place is not None:
            found[name] = f"$response.body#/{place}"
        elif asked.get(name):
            found[name] = f"$request.query.{name}" if verb == "get" else f"$request.body#/{name}"
    if not found:
        return None
    takes = {"parameters": {f"query.{name}": value for name, value in found.items()}} if to == "get" else None
    return {"operationId": target[to]["operationId"], **(takes or {"requestBody": found})}


def _places(name: str, answer: Schema, schemas: Schema) -> Iterator[str]:
    """Where an answer holds a value for a field: in itself, in a record that it holds, in the first of its items."""
    properties = answer.get("properties", {})
    if name in properties:
        yield name
    elif name.endswith("Id") and "id" in properties:
        yield "id"
    for member, schema in properties.items():
        inner = _resolved(schema, schemas)
        if member == "items" and "items" in inner:
            yield from (f"items/0/{place}" for place in _places(name, _resolved(inner["items"], schemas), {}))
        elif "$ref" in schema and inner.get("type") == "object":
            yield from (f"{member}/{place}" for place in _places(name, inner, {}))


def _fields(operation: Schema, verb: str, schemas: Schema) -> dict[str, bool]:
    """What a method takes, and whether it must be given."""
    if verb == "get":
        return {each["name"]: each["required"] for each in operation.get("parameters", ())}
    schema = _resolved(operation["requestBody"]["content"]["application/json"]["schema"], schemas)
    return {name: name in schema.get("required", ()) for name in schema.get("properties", {})}


def _resolved(schema: Schema, schemas: Schema) -> Schema:
    found: Schema = schemas.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    return found
