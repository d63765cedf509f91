"""Text that anybody may have written, as a page may show it: nothing invisible, nothing turned around, not too long."""

from __future__ import annotations

import re
from typing import Final

from django.http import HttpResponse

#: Longest text that a cell of a list shows.
CELL: Final = 80

# Controls, and what Unicode has to hide or to turn around text (UAX #9, UTS #39): a key must not look like another.
_UNSEEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
)
_IN_TEXT: Final = re.compile(f"[{_UNSEEN}]")
_BETWEEN_TAGS: Final = re.compile(r">[^<>]+<")
_IN_LINE: Final = re.compile(f"[{_UNSEEN}\n\t]")


def text(value: str) -> str:
    """The whole text; unseen characters are written as their escapes, such as ``\\u202e``. Lines stay lines."""
    return _IN_TEXT.sub(_escaped, value)


def line(value: str, limit: int = CELL) -> str:
    """The text in one line of at most ``limit`` characters, unseen ones and line ends written as their escapes."""
    shown = _IN_LINE.sub(_escaped, value[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def unveil(response: HttpResponse) -> None:
    """Write out every unseen character that a rendered page shows outside of its tags, whoever put it there."""
    page = response.content.decode()
    if _IN_TEXT.search(page):
        response.content = _BETWEEN_TAGS.sub(lambda found: text(found[0]), page)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
