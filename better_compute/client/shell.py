"""What the command lines share: ``key=value`` arguments, tables, refusals and exit codes."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from better_compute.client.errors import Problem

#: The exit codes of both shells; docs/how-to/use-a-client.md says the same.
DONE: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
NO_ANSWER: Final = 3
NOT_REACHED: Final = 4
INTERRUPTED: Final = 130
#: What each means, for the help of both.
EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 refused, 2 the question was wrong, 3 no answer, 4 what was waited for did not come, "
    "130 interrupted."
)

#: Narrowest column of a table on a terminal, in characters; rows that need narrower ones are shown line by line.
NARROWEST: Final = 8


class Unwritten(Exception):
    """The answer came, and standard output does not take it; the text says why."""


class Misused(Exception):
    """Arguments that cannot be read; the text says which and how to write them."""


def arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """``name=text`` and ``name:=json`` as an input; ``a.b=text`` is a member of ``a``."""
    input: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign or not name.strip(":"):
            raise Misused(f"{pair!r} is neither name=text nor name:=json.")
        if _not_utf8(pair):
            raise Misused(f"{printable(pair)!r} is no text: its bytes are not UTF-8.")
        value: Any = text
        if name.endswith(":"):
            name = name[:-1]
            try:
                value = msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                raise Misused(f"What {name}:= is given is not JSON: {error}. Text is written {name}=...") from None
        _put(input, name.split("."), value, pair)
    return input


def _not_utf8(text: str) -> bool:
    """Whether an argument holds bytes that Python could only carry along, as halves of surrogate pairs."""
    return any("\ud800" <= character <= "\udfff" for character in text)


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


def columns() -> int | None:
    """How wide the terminal is that standard output is; None when it is none, so that nothing is cut for a program."""
    return shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else None


def as_table(answer: Any, width: int | None = None) -> str:
    """An answer's list as a table with the rest above it; an answer without one as lines.

    With a ``width`` in columns the table fits it: long cells are cut, and where that leaves too little each row is
    shown line by line.
    """
    if not isinstance(answer, Mapping):
        return cell(answer)
    lists = [name for name, value in answer.items() if _is_rows(value)]
    rest = {name: value for name, value in answer.items() if name not in lists and value is not None}
    parts = [_lines(rest)] if rest else []
    for name in lists:
        # Beside other members, "none" alone does not say of what.
        title = f"{cell(name)}\n" if len(lists) > 1 or (rest and not answer[name]) else ""
        parts.append(title + _table(answer[name], width))
    return "\n\n".join(parts)


def _lines(members: Mapping[str, Any]) -> str:
    shown = {cell(name): cell(value) for name, value in members.items()}
    longest = max(_width(name) for name in shown)
    return "\n".join(f"{name}{' ' * (longest - _width(name))}  {value}" for name, value in shown.items())


def _is_rows(value: Any) -> bool:
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, Mapping) for each in value)
    )


def _table(rows: Sequence[Mapping[str, Any]], width: int | None) -> str:
    if not rows:
        return "none"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if not columns:
        return "\n".join("-" for _ in rows)
    lines = [[cell(name) for name in columns], *[[cell(row.get(name)) for name in columns] for row in rows]]
    widths = [max(_width(line[index]) for line in lines) for index in range(len(columns))]
    if width is not None:
        most = _widest(widths, width - 2 * (len(columns) - 1))
        if most < NARROWEST and most < max(widths):
            return "\n\n".join(_lines({name: row.get(name) for name in columns}) for row in rows)
        widths = [min(each, most) for each in widths]
        lines = [[_cut(text, most) for text in line] for line in lines]
    return "\n".join(_line(line, widths) for line in lines)


def _widest(widths: Sequence[int], room: int) -> int:
    """How wide a column may be so that all of them have room together."""
    most = max(widths)
    while most > 0 and sum(min(each, most) for each in widths) > room:
        most -= 1
    return most


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text + " " * (width - _width(text)) for text, width in zip(cells, widths, strict=True)).rstrip()


def printed(text: str) -> int:
    """Print it at once, and return the exit code.

    Raises
    ------
    BrokenPipeError
        Nobody reads any more; told here, before the interpreter meets it at exit.
    Unwritten
        Standard output takes no more, as on a full disk, or was closed.
    """
    if sys.stdout is None:
        raise Unwritten("The answer cannot be written: standard output is closed.")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        read_enough()
        raise Unwritten(f"The answer cannot be written: {error.strerror}.") from None
    return DONE


def read_enough() -> int:
    """Let nothing more be written, at exit neither, since whoever read has read enough; returns the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return DONE


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


def _cut(text: str, most: int) -> str:
    """The text, or as much of it as has room before an ellipsis, in columns of a terminal."""
    if _width(text) <= most:
        return text
    cut = text[: most - 1]
    while _width(cut) > most - 1:
        cut = cut[:-1]
    return f"{cut}\u2026"


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
    paths = document.get("paths", {})
    return {path.lstrip("/").replace("/", "."): item["post"] for path, item in paths.items()}


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
