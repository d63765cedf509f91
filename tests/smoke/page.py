"""The quickstart as its reader has it before them: files to write and lines to type, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "quickstart.md"
#: From this heading on everything is done in an empty folder.
_OWN_PROJECT = "## Begin a project of your own\n"
_BLOCK = re.compile(
    r"^```(?:\{(?P<directive>code-block|literalinclude)\} (?P<argument>\S+)|(?P<console>console))\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_OPTION = re.compile(r"^:(?P<name>[\w-]+): (?P<value>.*)\n", re.MULTILINE)
_PROMPT = re.compile(r"^\$ ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class File:
    """A listing with a caption: what it is called, and what stands in it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line after a prompt, and what the page shows below it."""

    typed: str
    shown: str


def steps() -> Iterator[File | Line]:
    """What the reader does, from the empty folder to the last call.

    Raises
    ------
    ValueError
        When a listing has no caption, so that nobody could say where it belongs.
    """
    text = PAGE.read_text(encoding="utf-8").partition(_OWN_PROJECT)[2]
    for block in _BLOCK.finditer(text):
        if block["console"]:
            for line in _PROMPT.split(block["body"])[1:]:
                typed, _, shown = line.replace("\\\n", "").partition("\n")
                yield Line(typed, shown)
        else:
            yield _file(block)


def _file(block: re.Match[str]) -> File:
    options = {option["name"]: option["value"] for option in _OPTION.finditer(block["body"])}
    if "caption" not in options:
        raise ValueError(f"{PAGE.name}: the listing {block['argument']!r} has no :caption:, so it belongs nowhere.")
    if block["directive"] == "literalinclude":
        return File(options["caption"], (PAGE.parent / block["argument"]).read_text(encoding="utf-8"))
    return File(options["caption"], _OPTION.sub("", block["body"]).lstrip("\n"))
