"""Which releases of the core a module works with: bounds such as ``>=1.2,<2``.

Only release numbers count. Pre-releases stand for the release they lead to, so that a module can be tried with
the core it will need.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Final

Release = tuple[int, int, int]

_COMPARISONS: Final[dict[str, Callable[[Release, Release], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_BOUND: Final = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+){0,2})\s*", re.ASCII)
_RELEASE: Final = re.compile(r"\d+(?:\.\d+){0,2}", re.ASCII)


def release(version: str) -> Release:
    """The first three numbers of ``version``; missing ones are zero.

    Raises
    ------
    ValueError
        When it begins with no number.
    """
    found = _RELEASE.match(version)
    if found is None:
        raise ValueError(f"{version!r} is no version")
    numbers = [int(part) for part in found[0].split(".")]
    return tuple([*numbers, 0, 0][:3])  # type: ignore[return-value]


def satisfies(version: str, bounds: str) -> bool:
    """Whether ``version`` lies within all of the comma-separated ``bounds``; empty bounds admit any.

    Raises
    ------
    ValueError
        When ``bounds`` cannot be read.
    """
    admitted = True
    for part in bounds.split(",") if bounds.strip() else ():
        bound = _BOUND.fullmatch(part)
        if bound is None:
            raise ValueError(f"{part.strip()!r} is no bound such as '>=1.2' or '<2'")
        admitted &= _COMPARISONS[bound[1]](release(version), release(bound[2]))
    return admitted
