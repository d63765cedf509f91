"""What a value may be, by its schema in the OpenAPI document: which members it has, and which texts it can show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from better_compute.client.shell import Misused, cell, methods

_TYPES: Final[dict[type, frozenset[str]]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    str: frozenset({"string"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
    type(None): frozenset({"null"}),
}
_WORDS: Final = {
    "boolean": "yes or no",
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "an object",
    "null": "- for none",
}
_NUMBERS: Final = {"integer": re.compile(r"-?[0-9]+"), "number": re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")}


@dataclass(frozen=True, slots=True)
class Shape:
    """A schema, with the components that it refers to. One that says nothing allows everything."""

    schema: Mapping[str, Any]
    components: Mapping[str, Any]

    @classmethod
    def of_answer(cls, document: Mapping[str, Any], method: str) -> Shape:
        """What a hosted method answers."""
        schema = methods(document)[method]["responses"]["200"]["content"]["application/json"]["schema"]
        return cls(schema, document["components"]["schemas"])

    @classmethod
    def of_input(cls, document: Mapping[str, Any], method: str) -> Shape:
        """What a hosted method takes."""
        schema = methods(document)[method]["requestBody"]["content"]["application/json"]["schema"]
        return cls(schema, document["components"]["schemas"])

    def alternatives(self) -> Iterator[Shape]:
        """The schemas of which one holds, references followed."""
        if "$ref" in self.schema:
            name = str(self.schema["$ref"]).rpartition("/")[2]
            yield from Shape(self.components.get(name, {}), self.components).alternatives()
        elif "anyOf" in self.schema:
            for each in self.schema["anyOf"]:
                yield from Shape(each, self.components).alternatives()
        else:
            yield self

    def types(self) -> list[str]:
        """Its JSON types; empty where it may be anything."""
        found = [_type(each.schema) for each in self.alternatives()]
        return [] if "" in found else list(dict.fromkeys(found))

    def told(self) -> str:
        """What it may be, in words."""
        return " or ".join(dict.fromkeys(_told(each) for each in self.alternatives()))

    def names(self) -> list[str]:
        """The members that an object of this shape has by declaration."""
        return list(dict.fromkeys(name for each in self.alternatives() for name in each.schema.get("properties", {})))

    def items(self) -> Shape:
        """What stands in a list of this shape."""
        found: Mapping[str, Any] = next(
            (each.schema["items"] for each in self.alternatives() if "items" in each.schema), {}
        )
        return Shape(found, self.components)

    def at(self, path: str, whose: str = "The answer") -> Shape:
        """The member ``a.b``.

        Raises
        ------
        Misused
            When it has none, with those that it has.
        """
        found, passed = self, whose
        for step in path.split("."):
            inner = found._member(step)
            if inner is None:
                named = ", ".join(found.names())
                raise Misused(f"{passed} has no {step!r}; " + (f"it has {named}." if named else "it has no members."))
            found, passed = inner, f"{whose}'s {step}"
        return found

    def _member(self, name: str) -> Shape | None:
        for each in self.alternatives():
            schema = each.schema
            if name in schema.get("properties", {}):
                return Shape(schema["properties"][name], self.components)
            open_to = schema.get("additionalProperties", "properties" not in schema)
            if _type(schema) in ("", "object") and open_to is not False:
                return Shape(open_to if isinstance(open_to, Mapping) else {}, self.components)
        return None

    def refuse_value(self, name: str, value: Any) -> None:
        """Raise Misused for a JSON value that a member of this shape never has."""
        types, listed = self.types(), self._listed()
        whole = isinstance(value, float) and value.is_integer() and "integer" in types
        if types and not whole and not _TYPES[type(value)] & set(types):
            raise self._never(name, msgspec.json.encode(value).decode())
        if listed is not None and value not in listed:
            raise self._never(name, msgspec.json.encode(value).decode())

    def refuse_text(self, name: str, text: str) -> None:
        """Raise Misused for a text that :func:`~better_compute.client.shell.cell` never shows of this shape."""
        types, listed = self.types(), self._listed()
        if not types or (text == "-" and "null" in types):
            return
        if listed is not None:
            shown = text in {cell(each) for each in listed}
        else:
            shown = any(_shows(each, text) for each in types)
        if not shown:
            raise self._never(name, text)

    def _listed(self) -> list[Any] | None:
        """All that it may be, where that is listed."""
        found: list[Any] = []
        for each in self.alternatives():
            if "const" in each.schema:
                found.append(each.schema["const"])
            elif "enum" in each.schema:
                found += each.schema["enum"]
            elif _type(each.schema) == "null":
                found.append(None)
            else:
                return None
        return found

    def _never(self, name: str, text: str) -> Misused:
        listed = self._listed()
        if listed is not None:
            return Misused(f"{name} is never {text!r}; it is one of {', '.join(cell(each) for each in listed)}.")
        kinds = " or ".join(_WORDS.get(each, each) for each in self.types())
        return Misused(f"{name} is never {text!r}; it is {kinds}.")


def _type(schema: Mapping[str, Any]) -> str:
    """The type that a schema states; empty where it states none."""
    if "type" in schema:
        return str(schema["type"])
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    kinds = {next(iter(_TYPES[type(each)] - {"number"}), "number") for each in values}
    return kinds.pop() if len(kinds) == 1 else ""


def _told(shape: Shape) -> str:
    schema, kind = shape.schema, _type(shape.schema)
    if "enum" in schema or "const" in schema:
        return ", ".join(cell(each) for each in schema.get("enum", [schema.get("const")]))
    if kind == "array":
        return f"list of {shape.items().told()}"
    if kind == "object" and shape.names():
        return f"object of {', '.join(shape.names())}"
    return {"string": "text", "": "anything"}.get(kind, kind)


def _shows(kind: str, text: str) -> bool:
    if kind in _NUMBERS:
        return _NUMBERS[kind].fullmatch(text) is not None
    if kind == "boolean":
        return text in ("yes", "no")
    if kind in ("array", "object"):
        return text.startswith("[" if kind == "array" else "{")
    return kind == "string"
