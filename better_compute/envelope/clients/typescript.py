"""Writes a typed TypeScript client in one file, without dependencies, for browsers and Node."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any, Final

from better_compute.contract.errors import ErrorCode
from better_compute.envelope.clients import surface
from better_compute.envelope.clients.surface import Field, Group, Method, Schema, Surface, Type

_SIMPLE: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_PLAIN: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")

_HEAD: Final = "// A client of one installation: `manage.py compute_client typescript` writes it anew on a change.\n"


def write(document: Schema) -> str:
    """The source of the client of what ``document`` describes."""
    offered = surface.read(document)
    codes = " | ".join(json.dumps(code.value) for code in ErrorCode)
    runtime = resources.files(__package__).joinpath("runtime.ts").read_text(encoding="utf-8")
    # `string & {}` keeps the known codes in an editor's list, and lets others pass.
    parts = [_HEAD, runtime.replace("/* codes */ string", f"{codes} | (string & {{}})")]
    parts += [_type(offered, each) for each in offered.types]
    parts += [_group(offered, group) for group in offered.root.below()]
    return "\n".join(parts)


def _type(offered: Surface, type: Type) -> str:
    lines = [f"/** {_doc(type.description or type.name)} */", f"export interface {type.name} {{"]
    lines += [f"  {_member(offered, each, lenient=type.answered)};" for each in type.fields]
    return "\n".join([*lines, "}", ""])


def _member(offered: Surface, each: Field, *, lenient: bool) -> str:
    mark = "" if each.required else "?"
    return f"{_key(each.name)}{mark}: {_annotation(offered, each.schema, lenient=lenient)}"


def _annotation(offered: Surface, schema: Schema, *, lenient: bool) -> str:
    if "$ref" in schema:
        return offered.type_name(schema["$ref"])
    if "anyOf" in schema:
        options = [_annotation(offered, each, lenient=lenient) for each in schema["anyOf"]]
        return "unknown" if "unknown" in options else " | ".join(dict.fromkeys(options))
    if "enum" in schema:
        known = " | ".join(json.dumps(value) for value in schema["enum"])
        # A newer server may know more values.
        return f"{known} | (string & {{}})" if lenient else known
    kind: Any = schema.get("type")
    if kind == "array":
        return f"({_annotation(offered, schema.get('items', {}), lenient=lenient)})[]"
    if kind == "object":
        values = schema.get("additionalProperties")
        inner = _annotation(offered, values, lenient=lenient) if isinstance(values, dict) else "unknown"
        return f"Record<string, {inner}>"
    return _SIMPLE.get(kind, "unknown")


def _class(group: Group) -> str:
    name = "".join(word[:1].upper() + word[1:] for step in group.path for word in step.split("-"))
    return f"{name}Methods" if group.path else "Client"


def _group(offered: Surface, group: Group) -> str:
    lines = [f"/** {'.'.join(group.path) or 'Every hosted method'}. */", f"export class {_class(group)} {{"]
    lines += [f"  readonly {_key(below.name)}: {_class(below)};" for below in group.groups.values()]
    lines += ["  readonly #transport: Transport;"]
    given = "transport: Transport" if group.path else "settings: Settings | Transport"
    lines += [f"  constructor({given}) {{"]
    if not group.path:
        lines += ["    const transport = settings instanceof Transport ? settings : new Transport(settings);"]
    lines += ["    this.#transport = transport;"]
    lines += [f"    this{_access(below.name)} = new {_class(below)}(transport);" for below in group.groups.values()]
    lines += ["  }"]
    for method in group.methods:
        lines += _method(offered, method)
    if not group.methods:
        lines += [
            "  /** What the groups call through. */",
            "  get transport(): Transport {",
            "    return this.#transport;",
        ]
        lines += ["  }"]
    return "\n".join([*lines, "}", ""])


def _method(offered: Surface, method: Method) -> Iterator[str]:
    answer = _annotation(offered, method.answer, lenient=True)
    members = "; ".join(_member(offered, each, lenient=False) for each in method.fields)
    optional = "" if any(each.required for each in method.fields) else " = {}"
    notice = _doc(method.deprecated.removeprefix("Deprecated "))
    deprecated = f" @deprecated {notice}" if notice else ""
    yield f"  /** {_doc(method.summary or method.dotted)}{deprecated} */"
    yield f"  {_key(method.name)}(input: {{ {members} }}{optional}, options?: Options): Promise<{answer}> {{"
    mutation = json.dumps(method.mutation)
    yield f"    return this.#transport.call({json.dumps(method.dotted)}, input, {mutation}, options);"
    yield "  }"
    if method.item is not None:
        yield from _list(offered, method, method.item, optional)
    elif not method.mutation:
        yield f"  /** The answers of `{method.name}`, as they come. */"
        given = f"input: {{ {members} }}{optional}, watching?: Watching, options?: Options"
        yield f"  {method.name}Watch({given}): Watch<{answer}> {{"
        named = json.dumps(method.dotted)
        yield f"    return new Watch(this.#transport, {named}, input, undefined, watching, options);"
        yield "  }"


def _list(offered: Surface, method: Method, item_schema: Schema, optional: str) -> Iterator[str]:
    """What goes through the pages of a list, and what watches it."""
    item = _annotation(offered, item_schema, lenient=True)
    members = "; ".join(_member(offered, each, lenient=False) for each in method.fields if each.name != "cursor")
    yield f"  /** Every item of `{method.name}`, page after page. */"
    given = f"input: {{ {members} }}{optional}, options?: Options"
    yield f"  {method.name}All({given}): AsyncGenerator<{item}, void, undefined> {{"
    yield f"    return this.#transport.pages({json.dumps(method.dotted)}, input, options);"
    yield "  }"
    yield f"  /** Changes of the items of `{method.name}`, as they come. */"
    if offered.has_id(item_schema):
        watching, identify = (
            f"watching: Partial<Identified<{item}>> = {{}}",
            f"watching.identify ?? ((item: {item}) => item.id)",
        )
    else:
        watching, identify = f"watching: Identified<{item}>", "watching.identify"
    # An optional parameter cannot stand before one that is not.
    given = f"input: {{ {members} }}{optional if offered.has_id(item_schema) else ''}, {watching}, options?: Options"
    yield f"  {method.name}Watch({given}): Watch<Change<{item}>> {{"
    named = json.dumps(method.dotted)
    yield f"    return new Watch(this.#transport, {named}, input, {identify}, watching, options);"
    yield "  }"


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _access(name: str) -> str:
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{json.dumps(name)}]"


def _doc(text: str) -> str:
    return text.strip().partition("\n")[0].replace("*/", "*\\/")
