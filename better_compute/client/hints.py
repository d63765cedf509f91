"""How to write an input right: what a refusal says of a member, told in the arguments that were typed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from better_compute.client.errors import Violation
from better_compute.client.shell import printable

#: What the server says of a value of another type, and of a member that there is not.
_TYPED: Final = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_UNKNOWN: Final = re.compile(r"unknown field `")
#: What it says of a member that is not given; of several it names the first.
MISSING: Final = "missing required field"


def of(pairs: Sequence[str], violations: Sequence[Violation], fields: Callable[[], Sequence[str]]) -> list[str]:
    """The hints for a refused input; ``fields`` gives the names of the method's fields when they are needed."""
    given = {"/" + _name(pair).replace(".", "/"): pair for pair in pairs}
    found = []
    for each in violations:
        pair, typed = given.get(each.pointer), _TYPED.search(each.detail)
        if pair is not None and typed is not None:
            found += list(_typed(pair, typed["wanted"].split(" | "), typed["got"]))
        elif _UNKNOWN.search(each.detail) and each.pointer.count("/") == 1:
            near = get_close_matches(each.pointer[1:], fields(), n=3)
            found += [meant(near)] if near else []
    return [printable(each) for each in found]


def meant(near: Sequence[str]) -> str:
    """A question after what comes near."""
    *others, last = near
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"


def _name(pair: str) -> str:
    return pair.partition("=")[0].removesuffix(":")


def _typed(pair: str, wanted: Sequence[str], got: str) -> Iterator[str]:
    name, text = _name(pair), pair.partition("=")[2]
    is_json = pair.partition("=")[0].endswith(":")
    if got == "str" and not is_json:
        yield f"{shlex.quote(pair)} gives text; write {shlex.quote(f'{name}:={_as_json(text, wanted)}')}"
    elif is_json and "str" in wanted:
        yield f"{shlex.quote(pair)} gives no text; write {shlex.quote(f'{name}={text}')}"


def _as_json(text: str, wanted: Sequence[str]) -> str:
    """The text as JSON of a wanted type; what cannot be read as one is shown by an example."""
    if "bool" in wanted and text.lower() in ("yes", "no", "true", "false"):
        return "true" if text.lower() in ("yes", "true") else "false"
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if "array" in wanted and not isinstance(value, list):
        return json.dumps([value])
    if not isinstance(value, str):
        return text
    return {"bool": "true", "object": "{}", "float": "1.5"}.get(wanted[0], "1")
