"""Writes a typed Python client, for blocking code and for ``asyncio``, on :mod:`better_compute.client`."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import Any, Final

from better_compute.envelope.clients import surface
from better_compute.envelope.clients.surface import Field, Group, Method, Schema, Surface, Type

_SIMPLE: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_TAKEN: Final = frozenset({"self", "options", "watching", "identify", "cursor_"})
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_HEAD: Final = '''\
"""A client of one installation, written by `manage.py compute_client python`: write it anew when modules change."""
# ruff: noqa

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from better_compute.client import AsyncTransport, AsyncWatch, Change, Options, Transport, Watch, Watching
'''


def write(document: Schema) -> str:
    """The source of the client of what ``document`` describes."""
    offered = surface.read(document)
    parts = [_HEAD]
    parts += [_type(offered, each) for each in offered.types]
    for asynchronous in (False, True):
        parts += [_group(offered, group, asynchronous=asynchronous) for group in offered.root.below()]
    return "\n\n".join(parts).rstrip() + "\n"


def snake(name: str) -> str:
    """``tenantId`` is ``tenant_id``; what Python keeps for itself gets an underscore."""
    text = _HUMP.sub("_", name.replace("-", "_")).lower()
    return f"{text}_" if keyword.iskeyword(text) or text in _TAKEN else text


def _type(offered: Surface, type: Type) -> str:
    lines = [f"class {type.name}(msgspec.Struct, kw_only=True, omit_defaults=True):"]
    lines += [f'    """{_doc(type.description or type.name)}"""', ""]
    for each in type.fields:
        lines.append(f"    {snake(each.name)}: {_member(offered, each, lenient=type.answered)}")
    return "\n".join(lines) + "\n"


def _member(offered: Surface, each: Field, *, lenient: bool) -> str:
    annotation = _annotation(offered, each.schema, lenient=lenient)
    renamed = f"name={each.name!r}" if snake(each.name) != each.name else ""
    if each.required:
        return f"{annotation} = msgspec.field({renamed})" if renamed else annotation
    default = each.schema.get("default")
    if "default" in each.schema and not isinstance(default, (list, dict)):
        value = repr(default)
    else:
        annotation, value = f"{annotation} | UnsetType", "UNSET"
    return f"{annotation} = msgspec.field(default={value}, {renamed})" if renamed else f"{annotation} = {value}"


def _annotation(offered: Surface, schema: Schema, *, lenient: bool) -> str:
    if "$ref" in schema:
        return offered.type_name(schema["$ref"])
    if "anyOf" in schema:
        options = [_annotation(offered, each, lenient=lenient) for each in schema["anyOf"]]
        return "Any" if "Any" in options else " | ".join(dict.fromkeys(options))
    if "enum" in schema:
        # A newer server may know more values.
        return "str" if lenient else f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    kind: Any = schema.get("type")
    if kind == "array":
        # Some methods are called `list`, and stand where the annotation is read.
        return f"builtins.list[{_annotation(offered, schema.get('items', {}), lenient=lenient)}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        inner = _annotation(offered, values, lenient=lenient) if isinstance(values, dict) else "Any"
        return f"builtins.dict[str, {inner}]"
    return _SIMPLE.get(kind, "Any")


def _class(group: Group, *, asynchronous: bool) -> str:
    prefix = "Async" if asynchronous else ""
    name = "".join(word[:1].upper() + word[1:] for step in group.path for word in step.split("-"))
    return f"{prefix}{name}Methods" if group.path else f"{prefix}Client"


def _group(offered: Surface, group: Group, *, asynchronous: bool) -> str:
    transport = "AsyncTransport" if asynchronous else "Transport"
    lines = [f"class {_class(group, asynchronous=asynchronous)}:"]
    lines += [f'    """{".".join(group.path) or "Every hosted method"}."""', ""]
    lines += [f"    def __init__(self, transport: {transport}) -> None:", "        self.transport = transport"]
    for below in group.groups.values():
        lines.append(f"        self.{snake(below.name)} = {_class(below, asynchronous=asynchronous)}(transport)")
    for method in group.methods:
        lines += ["", *_method(offered, method, asynchronous=asynchronous)]
        if method.item is not None:
            lines += ["", *_iterator(offered, method, method.item, asynchronous=asynchronous)]
        if not method.mutation:
            lines += ["", *_watch(offered, method, asynchronous=asynchronous)]
    return "\n".join(lines) + "\n"


def _method(offered: Surface, method: Method, *, asynchronous: bool) -> Iterator[str]:
    define, wait = ("async def", "await ") if asynchronous else ("def", "")
    answer = _annotation(offered, method.answer, lenient=True)
    yield f"    {define} {snake(method.name)}({_parameters(offered, method)}) -> {answer}:"
    yield f'        """{_doc(f"{method.summary or method.dotted} {method.deprecated}".rstrip())}"""'
    yield f"        input: builtins.dict[str, Any] = {_input(method)}"
    yield f"        answer: {answer} = {wait}self.transport.call("
    yield f"            {method.dotted!r}, input, {answer}, mutation={method.mutation}, options=options"
    yield "        )"
    yield "        return answer"


def _iterator(offered: Surface, method: Method, item: Schema, *, asynchronous: bool) -> Iterator[str]:
    define, kind, wait = ("async def", "AsyncIterator", "await ") if asynchronous else ("def", "Iterator", "")
    shown = _annotation(offered, item, lenient=True)
    yield f"    {define} {snake(method.name)}_all({_parameters(offered, method, but='cursor')}) -> {kind}[{shown}]:"
    yield f'        """Every item of `{snake(method.name)}`, page after page."""'
    yield "        cursor: str = ''"
    yield "        while True:"
    arguments = ", ".join(f"{snake(each.name)}={snake(each.name)}" for each in method.fields)
    yield f"            page = {wait}self.{snake(method.name)}({arguments}, options=options)"
    yield "            for item in page.items:"
    yield "                yield item"
    yield "            if not page.next_cursor:"
    yield "                return"
    yield "            cursor = page.next_cursor"


def _watch(offered: Surface, method: Method, *, asynchronous: bool) -> Iterator[str]:
    kind = "AsyncWatch" if asynchronous else "Watch"
    answer = _annotation(offered, method.answer, lenient=True)
    shown, given, more = answer, "", ""
    if method.item is not None:
        item = _annotation(offered, method.item, lenient=True)
        shown, more = f"Change[{item}]", ", listed=True, identify=identify"
        given = f"identify: Callable[[{item}], str]"
        if offered.has_id(method.item):
            given += " | None = None"
    parameters = _parameters(offered, method, but="cursor" if method.item is not None else "", more=given)
    yield f"    def {snake(method.name)}_watch({parameters}) -> {kind}[{shown}]:"
    told = "Changes of the items" if method.item is not None else "The answers"
    yield f'        """{told} of `{snake(method.name)}`, as they come."""'
    yield f"        input: builtins.dict[str, Any] = {_input(method, but='cursor' if method.item is not None else '')}"
    yield f"        return {kind}("
    yield f"            self.transport, {method.dotted!r}, input, {answer}{more}, watching=watching, options=options"
    yield "        )"


def _input(method: Method, *, but: str = "") -> str:
    members = ", ".join(f"{each.name!r}: {snake(each.name)}" for each in method.fields if each.name != but)
    return f"{{{members}}}"


def _parameters(offered: Surface, method: Method, *, but: str = "", more: str | None = None) -> str:
    """The parameters of a method; ``more`` is None for one that is no watch."""
    parameters = ["self", "*", *filter(None, [more])]
    for each in method.fields:
        if each.name == but:
            continue
        annotation = _annotation(offered, each.schema, lenient=False)
        optional = "" if each.required else " | UnsetType = UNSET"
        parameters.append(f"{snake(each.name)}: {annotation}{optional}")
    watching = [] if more is None else ["watching: Watching = Watching()"]
    return ", ".join([*parameters, *watching, "options: Options = Options()"])


def _doc(text: str) -> str:
    line = text.strip().partition("\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return f"{line} " if line.endswith('"') else line
