"""Code blocks of the book that are marked to be run: ``% runnable`` on the line before the fence.

Blocks of one page share a namespace and run in their order, as a reader would type them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_RUNNABLE = re.compile(r"^% runnable\n```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"^% runnable$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block that is run, and where it stands."""

    page: Path
    line: int
    language: str
    code: str


def pages() -> list[Path]:
    """Every page of the book."""
    return sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


def snippets(page: Path) -> list[Snippet]:
    """The runnable blocks of ``page``.

    Raises
    ------
    ValueError
        When a mark stands before anything but a fence: it would silently run nothing.
    """
    text = page.read_text(encoding="utf-8")
    found = [
        Snippet(page, text.count("\n", 0, match.start("code")) + 1, match["language"], match["code"])
        for match in _RUNNABLE.finditer(text)
    ]
    if len(found) != len(_MARK.findall(text)):
        raise ValueError(f"{page.relative_to(DOCS)}: a '% runnable' mark stands before no fenced block.")
    return found
