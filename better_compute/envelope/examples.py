"""Examples of the OpenAPI document: an input that each method takes and an answer as it gives, made from their schemas.

What a field's ``Meta(examples=[...])`` names comes first. Whatever is made is decoded as the method's own type; what
does not pass is left out, so that nobody copies what is refused. The tenant of the examples is none that exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.methods import MethodSpec
from better_compute.envelope import codec, problem

Schema = Mapping[str, Any]

#: Deepest that an answer is shown; what nests without an end is cut there.
_DEEPEST: Final = 8
_TIME: Final = "2027-01-31T12:00:00Z"
_REQUEST_ID: Final = "0f8f2b1c6d3e4a5b9c7d8e6f5a4b3c2d"
#: By the name of a field, and else the first that its pattern and length allow.
_NAMED: Final = {
    "reason": "Planned maintenance.",
    "label": "Nightly backup",
    "kind": "tenancy",
    "action": "compute:system:read",
    "permits": "compute:system:read",
    "ceiling": "compute:system:read",
    "tenantId": "tenant-1",
    "parentId": "parent-1",
    "roleId": "tenant-1/operator",
    "type": "tenant",
}
_TEXTS: Final = (
    "example-1",
    "service/example",
    "user/mary",
    "external/idp/mary",
    "018f6b1c-6d3e-7a5b-8c7d-8e6f5a4b3c2d",
    "a",
)


def of_input(spec: MethodSpec, schema: Schema, components: Mapping[str, Schema]) -> Any:
    """An input that the method takes, as short as it can be; None when none is found."""
    for wanted in _fewest_first(_resolved(schema, components)):
        made = _make(schema, components, only=wanted)
        try:
            spec.resource(codec.decode_body(spec.input_type, msgspec.json.encode(made)))
        except Exception:  # noqa: S112 - whatever it refuses is no example
            continue
        return made
    return None


def of_answer(spec: MethodSpec, schema: Schema, components: Mapping[str, Schema]) -> Any:
    """An answer as the method gives it; None when none is found."""
    made = _make(schema, components)
    try:
        msgspec.json.decode(msgspec.json.encode(made), type=spec.output_type)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return made


def of_refusal(code: ErrorCode) -> dict[str, Any]:
    """A problem document with this code."""
    error = ComputeError(code, "What is wrong stands here, with the value.", mend="What can be done stands here.")
    return problem.document(error, _REQUEST_ID)


def _fewest_first(schema: Schema) -> Iterator[frozenset[str]]:
    """The required fields; then one optional one beside them, where one of several is wanted."""
    required = frozenset(schema.get("required", ()))
    yield required
    for name in schema.get("properties", {}):
        if name not in required:
            yield required | {name}


def _resolved(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    return components.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)


def _make(
    schema: Schema,
    components: Mapping[str, Schema],
    name: str = "",
    depth: int = 0,
    only: frozenset[str] | None = None,
) -> Any:
    found = _resolved(schema, components)
    for key in ("examples", "enum"):
        if found.get(key):
            return found[key][0]
    if "const" in found or name == "nextCursor":
        return found.get("const")
    if "anyOf" in found:
        return _make(found["anyOf"][0], components, name, depth)
    if depth > _DEEPEST:
        return None
    if found.get("type") == "object":
        fields = found.get("properties", {})
        chosen = [each for each in fields if only is None or each in only]
        return {each: _make(fields[each], components, each, depth + 1) for each in chosen}
    if found.get("type") == "array":
        return [_make(found["items"], components, name, depth + 1)] if found.get("items") else []
    return _plain(found, name)


def _plain(schema: Schema, name: str) -> Any:
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    return _text(schema, name) if kind == "string" else None


def _text(schema: Schema, name: str) -> str | None:
    if schema.get("format") == "date-time":
        return _TIME
    return next((text for text in (_NAMED.get(name, _TEXTS[0]), *_TEXTS) if _fits(text, schema)), None)


def _fits(text: str, schema: Schema) -> bool:
    bounds = schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text))
    return bounds and re.search(schema.get("pattern", ""), text) is not None
