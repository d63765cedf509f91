"""Names that stand twice in one JSON object: decoders overlook them, and one takes the last value, another the first.

RFC 8259 (section 4) leaves open which one counts, so a body with one says one thing to a proxy and another to us. An
ordinary body costs one more decoding and a count, some hundred nanoseconds; only a body in which the counts differ is
read again, slowly, for the place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

#: Every name with its colon, and few others: texts that begin with a colon, or have one behind a quote.
_NAMED: Final = re.compile(rb'"[ \t\r\n]*:')
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class _Repeating(dict[str, Any]):
    """An object that has a name twice."""

    name = ""


def first(text: bytes) -> tuple[str, ...] | None:
    """The path of the first name that stands again in its object, by names and indices; None when there is none.

    ``text`` is sound JSON that nests no deeper than the codec allows.
    """
    # Outside of strings every colon stands behind a name, and a decoded object has each of its names once.
    most = text.count(b":")
    if most < 2:
        return None
    value = _decoded(text)
    names = len(value) if text.count(b"{") == 1 and type(value) is dict else _count(value)
    # Each is nearer to the number of names than the one before, and dearer.
    if names == most or names == len(_NAMED.findall(text)) or _STRING.sub(b"", text).count(b":") == names:
        return None
    marked = json.loads(text, object_pairs_hook=_mark, parse_int=str, parse_float=str, strict=False)
    return next(_places(marked, ()), None)


def _decoded(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # A number that only its field's own type can hold.
        return json.loads(text, parse_int=str, parse_float=str, strict=False)


def _count(value: Any) -> int:
    """How many names stand in all objects of ``value``."""
    names, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if type(each) is dict:
            names += len(each)
            each = each.values()
        waiting += [member for member in each if type(member) is dict or type(member) is list]
    return names


def _mark(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    marked, seen = _Repeating(found), set()
    for name, _ in pairs:
        if name in seen:
            marked.name = name
            break
        seen.add(name)
    return marked


def _places(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, _Repeating):
        yield (*path, value.name)
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield from _places(member, (*path, str(step)))
