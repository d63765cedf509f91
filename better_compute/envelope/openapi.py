"""The OpenAPI 3.1 document of what is hosted here, made from the registry: plugins included, nothing by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, get_args, get_origin

import msgspec
from django.conf import settings

import better_compute
from better_compute import conf, registry
from better_compute.contract.errors import STATUS, ErrorCode
from better_compute.contract.methods import MethodSpec
from better_compute.contract.pages import PageInput
from better_compute.envelope import codec, examples, idempotency, links, problem, response_headers
from better_compute.envelope.matrix import resource_type

VERSION: Final = "3.1.0"
_REF: Final = "#/components/schemas/{name}"

#: Codes that the envelope itself may answer, by what is called; a method may refuse with others.
_ALWAYS: Final = (
    ErrorCode.INVALID_INPUT,
    ErrorCode.UNAUTHENTICATED,
    ErrorCode.ACCESS_DENIED,
    ErrorCode.NOT_FOUND,
    ErrorCode.METHOD_NOT_ALLOWED,
    ErrorCode.CONFLICT,
    ErrorCode.RATE_LIMITED,
    ErrorCode.INTERNAL_ERROR,
    ErrorCode.STORAGE_BUSY,
)
_WITH_BODY: Final = (
    ErrorCode.LENGTH_REQUIRED,
    ErrorCode.PAYLOAD_TOO_LARGE,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
)


def _refusal(code: ErrorCode) -> dict[str, str]:
    return {"$ref": f"#/components/responses/{STATUS[code].phrase.replace(' ', '')}"}


_REFUSALS: Final = {int(STATUS[code]): _refusal(code) for code in (*_ALWAYS, *_WITH_BODY)}
#: What a list may answer besides.
_OF_LISTS: Final = {int(STATUS[ErrorCode.CURSOR_EXPIRED]): _refusal(ErrorCode.CURSOR_EXPIRED)}

_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "description": "What is wrong (RFC 9457). Branch on `code`, never on texts.",
    "required": ["type", "title", "status", "detail", "instance", "code"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, with the offending value."},
        "instance": {"type": "string", "description": "The request id, under which the log has more."},
        "code": {"type": "string", "enum": [code.value for code in ErrorCode]},
        "mend": {"type": "string", "description": "What can be done about it."},
        "reason": {"type": "string", "description": "A refinement of the code."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "RFC 6901 pointer into the input."},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}


_kept: Final[dict[str, tuple[tuple[Any, ...], bytes]]] = {}


def document() -> dict[str, Any]:
    """The document of this process's registry, ready for JSON."""
    specs = list(registry.current().methods.values())
    schemas = _schemas(specs)
    made: dict[str, Any] = {
        "openapi": VERSION,
        "info": {
            "title": "Better Compute",
            "version": better_compute.__version__,
            "description": "Every hosted method. Mutations answer POST; queries answer GET too, unless they require an "
            "object. A GET has no body. A body is JSON in UTF-8, and none of its objects has a name twice. A number or "
            "a truth value in a query string is written as JSON writes it, a whole number by its digits. No text may "
            "hold a NUL character.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": f"{conf.current().base_url.rstrip('/')}/api/compute"}],
        "security": [{"token": []}, {"session": []}],
        "tags": list(_tags(specs)),
        "paths": {f"/{spec.path}": _path(spec, schemas) for spec in specs},
        "components": {
            "schemas": {**schemas.components, "Problem": _PROBLEM},
            "responses": {
                STATUS[code].phrase.replace(" ", ""): _problem_response(code)
                for code in (*_ALWAYS, *_WITH_BODY, ErrorCode.CURSOR_EXPIRED)
            },
            "headers": response_headers.components(),
            "parameters": {
                "IdempotencyKey": {
                    "name": "Idempotency-Key",
                    "in": "header",
                    "description": "A call repeated under the same key has its effect once and answers the same. One "
                    "key, without commas; a dry run neither uses nor heeds what is kept under it.",
                    "schema": {"type": "string", "pattern": f"^{idempotency.PATTERN}$"},
                },
                "DryRun": {
                    "name": "dryRun",
                    "in": "query",
                    "description": "Make every check as for a call that was not made yet, answer, and keep nothing.",
                    "schema": {"type": "boolean", "default": False},
                },
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`manage.py compute_token create`"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": settings.SESSION_COOKIE_NAME,
                    "description": "Django's session; POST needs X-CSRFToken too.",
                },
            },
        },
    }
    links.add(made)
    return made


def encode() -> bytes:
    """The document as JSON; made once for what is hosted and set, since it takes as long as many calls."""
    made_for = (registry.current(), conf.current(), settings.SESSION_COOKIE_NAME)
    kept = _kept.get("document")
    if kept is None or not all(was is now for was, now in zip(kept[0], made_for, strict=True)):
        kept = _kept["document"] = (made_for, msgspec.json.encode(document()))
    return kept[1]


class _Schemas:
    """The schema of every input and answer, by its type, and the components that they refer to."""

    def __init__(self, types: list[Any]) -> None:
        structs = _structs(types)
        schemas, components = msgspec.json.schema_components([*types, *structs], ref_template=_REF)
        self.components: dict[str, dict[str, Any]] = components
        for struct, schema in zip(structs, schemas[len(types) :], strict=True):
            _state_times(struct, components[str(schema["$ref"]).rpartition("/")[2]])
        schemas = schemas[: len(types)]
        self._by_type = list(zip(types, schemas, strict=True))

    def of(self, annotation: Any) -> dict[str, Any]:
        """The schema of one of the types."""
        return next(schema for known, schema in self._by_type if known is annotation)


def _structs(types: list[Any]) -> list[type[msgspec.Struct]]:
    """Every struct that the types are made of."""
    found: dict[type[msgspec.Struct], None] = {}
    waiting = list(types)
    while waiting:
        each = waiting.pop(0)
        origin = get_origin(each) or each
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            if each not in found:
                found[each] = None
                waiting += [field.type for field in msgspec.structs.fields(each)]
        else:
            waiting += [part for part in get_args(each) if isinstance(part, type) or get_origin(part) is not None]
    return list(found)


def _state_times(struct: type[msgspec.Struct], schema: dict[str, Any]) -> None:
    """Say of every point in time that it is one; msgspec says so only of what must have an offset."""
    for field in msgspec.structs.fields(struct):
        if datetime in codec.alternatives(field.type):
            stated = schema["properties"][field.encode_name]
            for each in (stated, *stated.get("anyOf", ())):
                if each.get("type") == "string":
                    each.setdefault("format", "date-time")


def _schemas(specs: list[MethodSpec]) -> _Schemas:
    types: list[Any] = []
    for spec in specs:
        for annotation in (spec.input_type, spec.output_type):
            if not any(known is annotation for known in types):
                types.append(annotation)
    return _Schemas(types)


def _tags(specs: list[MethodSpec]) -> Iterator[dict[str, Any]]:
    seen = set()
    for spec in specs:
        if _tag(spec) not in seen:
            seen.add(_tag(spec))
            summary = (spec.viewset.__doc__ or "").strip().partition("\n")[0]
            yield {"name": _tag(spec), "description": summary}


def _tag(spec: MethodSpec) -> str:
    return spec.dotted.rpartition(".")[0]


def _path(spec: MethodSpec, schemas: _Schemas) -> dict[str, Any]:
    post = _operation(spec, schemas, spec.dotted)
    required = any(field.required for field in msgspec.structs.fields(spec.input_type))
    given = examples.of_input(spec, schemas.of(spec.input_type), schemas.components)
    body = {"schema": schemas.of(spec.input_type), **_example(given)}
    post["requestBody"] = {"required": required, "content": {"application/json": body}}
    if spec.kind == "mutation":
        post["parameters"] = [
            {"$ref": "#/components/parameters/IdempotencyKey"},
            {"$ref": "#/components/parameters/DryRun"},
        ]
        return {"post": post}
    if not codec.answers_get(spec.input_type):
        return {"post": post}
    get = _operation(spec, schemas, f"{spec.dotted}.get")
    get["parameters"] = list(_parameters(spec, schemas, given or {}))
    without_body = {str(int(STATUS[code])) for code in _WITH_BODY}
    get["responses"] = {status: value for status, value in get["responses"].items() if status not in without_body}
    return {"get": get, "post": post}


def _operation(spec: MethodSpec, schemas: _Schemas, operation_id: str) -> dict[str, Any]:
    schema = schemas.of(spec.output_type)
    answer = {"schema": schema, **_example(examples.of_answer(spec, schema, schemas.components))}
    refusals = {**_REFUSALS, **(_OF_LISTS if issubclass(spec.input_type, PageInput) else {})}
    notice = spec.deprecated.notice() if spec.deprecated else ""
    return {
        "operationId": operation_id,
        "tags": [_tag(spec)],
        "summary": spec.summary,
        "description": f"Needs `{spec.action}` on a resource of type `{resource_type(spec)}`. {notice}".rstrip(),
        **({"deprecated": True} if spec.deprecated else {}),
        "x-compute": {
            "module": spec.module,
            "action": spec.action,
            "kind": spec.kind,
            **({"deprecated": notice} if notice else {}),
        },
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": response_headers.of_answer(spec),
                "content": {"application/json": answer},
            },
            **{str(status): response for status, response in sorted(refusals.items())},
        },
    }


def _example(value: Any) -> dict[str, Any]:
    return {} if value is None else {"example": value}


def _parameters(spec: MethodSpec, schemas: _Schemas, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One query parameter for every field; a nested object has no form in a query string and is left to POST."""
    properties = _resolved(schemas.of(spec.input_type), schemas).get("properties", {})
    for field in msgspec.structs.fields(spec.input_type):
        schema = properties.get(field.encode_name, {})
        if codec.has_query_form(field.type):
            name = field.encode_name
            yield {
                "name": name,
                "in": "query",
                "required": field.required,
                "schema": schema,
                **_example(given.get(name)),
            }


def _resolved(schema: dict[str, Any], schemas: _Schemas) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return schemas.components.get(name, schema)


def _problem_response(code: ErrorCode) -> dict[str, Any]:
    return {
        "description": STATUS[code].phrase,
        "headers": response_headers.of_refusal(code),
        "content": {
            problem.CONTENT_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "example": examples.of_refusal(code),
            }
        },
    }
