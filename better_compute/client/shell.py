"""What the command lines share: ``key=value`` arguments, tables, refusals and exit codes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from better_compute.client.errors import Problem

DONE: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
NO_ANSWER: Final = 3
NOT_REACHED: Final = 4
INTERRUPTED: Final = 130

#: Widest column of a table, in characters.
WIDEST: Final = 60


class Misused(Exception):
    """Arguments that cannot be read; the text says which and how to write them."""


def arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """``name=text`` and ``name:=json`` as an input; ``a.b=text`` is a member of ``a``."""
    input: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip(":"):
            raise Misused(f"{pair!r} is neither name=text nor name:=json.")
        value: Any = text
        if name.endswith(":"):
            name = name[:-1]
            try:
                value = msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                raise Misused(f"What {name}:= is given is not JSON: {error}.") from None
        _put(input, name.split("."), value, pair)
    return input


def _put(input: dict[str, Any], path: Sequence[str], value: Any, pair: str) -> None:
    place = input
    for step in path[:-1]:
        place = place.setdefault(step, {})
        if not isinstance(place, dict):
            raise Misused(f"{pair!r} gives a member to what was given a value.")
    if path[-1] in place:
        raise Misused(f"{'.'.join(path)} is given twice.")
    place[path[-1]] = value


def as_json(answer: Any) -> str:
    """Indented JSON, safe for a terminal: JSON escapes what would steer it."""
    return printable(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def as_table(answer: Any) -> str:
    """An answer's list as a table with the rest above it; an answer without one as lines."""
    if not isinstance(answer, Mapping):
        return cell(answer)
    lists = [name for name, value in answer.items() if _is_rows(value)]
    rest = {cell(name): value for name, value in answer.items() if name not in lists and value is not None}
    parts = []
    if rest:
        width = max(len(name) for name in rest)
        parts.append("\n".join(f"{name.ljust(width)}  {cell(value)}" for name, value in rest.items()))
    for name in lists:
        title = f"{name}\n" if len(lists) > 1 else ""
        parts.append(title + _table(answer[name]))
    return "\n\n".join(parts)


def _is_rows(value: Any) -> bool:
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, Mapping) for each in value)
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "none"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [
        [_cut(cell(name)).upper() for name in columns],
        *[[_cut(cell(row.get(name))) for name in columns] for row in rows],
    ]
    widths = [max(_width(line[index]) for line in lines) for index in range(len(columns))]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text + " " * (width - _width(text)) for text, width in zip(cells, widths, strict=True)).rstrip()


def cell(value: Any) -> str:
    """A value on one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return printable(text).replace("\n", "\u2424").replace("\t", " ")


def printable(text: str) -> str:
    """Text that cannot steer a terminal: what a tenant wrote may hold escape sequences."""
    return "".join("\ufffd" if _steers(character) else character for character in text)


def _steers(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}\u2026"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def refusal(problem: Problem) -> str:
    """A refusal with its mend, where the input is wrong, and the request id."""
    lines = [f"{problem.code or problem.status}: {problem.detail or problem.title}"]
    lines += [f"  at {each.pointer or 'the input'}: {each.detail}" for each in problem.errors]
    lines += [f"  {problem.mend}"] if problem.mend else []
    lines += [f"  reason {problem.reason}"] if problem.reason else []
    lines += [f"  request {problem.instance}"] if problem.instance else []
    return printable("\n".join(lines))


def methods(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The operations of an OpenAPI document by the methods' dotted names."""
    return {path.lstrip("/").replace("/", "."): item["post"] for path, item in document["paths"].items()}


def fields(document: Mapping[str, Any], method: str) -> list[str]:
    """The names of a method's input fields, required ones first."""
    operation = methods(document).get(method)
    if operation is None:
        return []
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found = document["components"]["schemas"].get(name, schema)
    required = found.get("required", [])
    return [*required, *(each for each in found.get("properties", {}) if each not in required)]


def is_mutation(document: Mapping[str, Any], method: str) -> bool:
    """Whether a method changes something; one that is not hosted does not."""
    operation = methods(document).get(method)
    return operation is not None and bool(operation["x-compute"]["kind"] == "mutation")


def is_list(document: Mapping[str, Any], method: str) -> bool:
    """Whether a method answers pages."""
    operation = methods(document).get(method)
    if operation is None:
        return False
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    properties = document["components"]["schemas"].get(name, {}).get("properties", {})
    return "items" in properties and "nextCursor" in properties


def completions(document: Mapping[str, Any], words: Sequence[str], options: Iterable[str]) -> list[str]:
    """What the last of ``words`` may become: a method, one of its fields, or an option."""
    *before, last = words or [""]
    if last.startswith("-"):
        return [each for each in options if each.startswith(last)]
    method = next((word for word in before if not word.startswith("-")), None)
    if method is None:
        return sorted(each for each in methods(document) if each.startswith(last))
    given = {word.partition("=")[0].rstrip(":") for word in before}
    return [f"{each}=" for each in fields(document, method) if each.startswith(last) and each not in given]
