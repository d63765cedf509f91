"""What a client has to offer, read from an OpenAPI document: types, groups and methods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Schema = Mapping[str, Any]

_DROPPED: Final = frozenset({"compute_modules", "better_compute", "api"})
#: Names that the clients have already.
_RESERVED: Final = frozenset(
    {
        "Any",
        "ApiError",
        "AsyncClient",
        "AsyncTransport",
        "AsyncWatch",
        "BadAnswer",
        "Change",
        "Client",
        "ConnectionLost",
    }
    | {"ErrorCode", "Identified", "Literal", "Options", "Problem", "Settings", "Transport", "Watch", "Watching"}
)
_WORD: Final = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Field:
    """A member of an object."""

    name: str
    schema: Schema
    required: bool


@dataclass(frozen=True, slots=True)
class Type:
    """An object type. ``answered`` tells that servers send it, so that a newer one may say more in it."""

    name: str
    description: str
    fields: tuple[Field, ...]
    answered: bool


@dataclass(frozen=True, slots=True)
class Method:
    """A method: its dotted name, input fields, answer, and the type of its items when it answers pages."""

    dotted: str
    name: str
    mutation: bool
    summary: str
    #: Since when and what to use instead, of a method that will go; else empty.
    deprecated: str
    fields: tuple[Field, ...]
    answer: Schema
    item: Schema | None


@dataclass(slots=True)
class Group:
    """Methods and groups below one name; the root's name is empty."""

    name: str
    path: tuple[str, ...] = ()
    groups: dict[str, Group] = field(default_factory=dict)
    methods: list[Method] = field(default_factory=list)

    def below(self) -> Iterator[Group]:
        """This group after all groups below it."""
        for group in self.groups.values():
            yield from group.below()
        yield self


@dataclass(frozen=True, slots=True)
class Surface:
    """Everything that a document describes."""

    types: tuple[Type, ...]
    root: Group
    names: Mapping[str, str]
    #: Names of the components whose objects have a text called ``id``.
    identified: frozenset[str]

    def has_id(self, schema: Schema) -> bool:
        """Whether an item says itself what tells it apart."""
        return _name_of(schema) in self.identified

    def type_name(self, ref: str) -> str:
        """The name of the type that a ``$ref`` points at."""
        return self.names[ref.rpartition("/")[2]]


def read(document: Schema) -> Surface:
    """Read a document that :mod:`better_compute.envelope.openapi` made."""
    # In an order of its own, so that the same surface is always written as the same bytes.
    schemas: Mapping[str, Schema] = dict(sorted(document["components"]["schemas"].items()))
    paths: Mapping[str, Schema] = dict(sorted(document["paths"].items()))
    names = _names([name for name in schemas if name != "Problem"])
    methods = [_method(path, item["post"], schemas) for path, item in paths.items()]
    answered = _reachable([method.answer for method in methods], schemas)
    inputs = {_name_of(item["post"]["requestBody"]["content"]["application/json"]["schema"]) for item in paths.values()}
    # An input's fields become a method's parameters, so its own type is needed only where another refers to it.
    nested = _reachable([each.schema for method in methods for each in method.fields], schemas)
    types = tuple(
        Type(names[name], schema.get("description", ""), _fields(schema), name in answered)
        for name, schema in schemas.items()
        if name in names and (name in answered or name in nested or name not in inputs)
    )
    root = Group("")
    for method in methods:
        place = root
        for step in method.dotted.split(".")[:-1]:
            place = place.groups.setdefault(step, Group(step, (*place.path, step)))
        place.methods.append(method)
    identified = frozenset(
        name for name, schema in schemas.items() if schema.get("properties", {}).get("id", {}).get("type") == "string"
    )
    return Surface(types, root, names, identified)


def _method(path: str, operation: Schema, schemas: Mapping[str, Schema]) -> Method:
    dotted = path.lstrip("/").replace("/", ".")
    input = operation["requestBody"]["content"]["application/json"]["schema"]
    fields = _fields(schemas[_name_of(input)] if "$ref" in input else input)
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    page = schemas.get(_name_of(answer), {}).get("properties", {})
    pages = "nextCursor" in page and any(each.name == "cursor" for each in fields)
    return Method(
        dotted=dotted,
        name=dotted.rpartition(".")[2],
        mutation=operation["x-compute"]["kind"] == "mutation",
        summary=operation.get("summary", ""),
        deprecated=operation["x-compute"].get("deprecated", ""),
        fields=fields,
        answer=answer,
        item=page["items"]["items"] if pages else None,
    )


def _fields(schema: Schema) -> tuple[Field, ...]:
    required = set(schema.get("required", ()))
    fields = [Field(name, each, name in required) for name, each in schema.get("properties", {}).items()]
    return tuple(sorted(fields, key=lambda each: not each.required))


def _name_of(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _reachable(roots: list[Schema], schemas: Mapping[str, Schema]) -> set[str]:
    found: set[str] = set()
    waiting: list[Any] = list(roots)
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            name = _name_of(each)
            if name and name not in found:
                found.add(name)
                waiting.append(schemas[name])
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return found


def _names(components: list[str]) -> dict[str, str]:
    """Names for the types: ``Page_Key_`` is PageKey, ``compute_modules.iam.api.tree.Tenant`` is IamTreeTenant."""
    names: dict[str, str] = {}
    for component in components:
        parts = component.split(".")
        short = _camel([part for part in parts if part not in _DROPPED])
        free = short not in names.values() and short not in _RESERVED
        names[component] = short if free else f"{_camel(parts)}{'_' if len(parts) == 1 else ''}"
    return names


def _camel(parts: list[str]) -> str:
    return "".join(word[:1].upper() + word[1:] for part in parts for word in _WORD.findall(part.replace("_", " ")))
