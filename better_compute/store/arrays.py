"""Arrays as PostgreSQL reads them, written in one go: a driver that dumps element by element costs a claim's time."""

from __future__ import annotations

from collections.abc import Iterable


def integers(values: Iterable[int | None]) -> str:
    """``{1,NULL,3}``, for a parameter that is cast to an array of integers."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def texts(values: Iterable[str]) -> str:
    """``{"a","b"}``, for a parameter that is cast to ``text[]``; every element is quoted."""
    listed = list(values)
    if not listed:
        return "{}"
    joined = "\n".join(listed)
    if '"' in joined or "\\" in joined:
        listed = [value.replace("\\", "\\\\").replace('"', '\\"') for value in listed]
    return '{"' + '","'.join(listed) + '"}'
