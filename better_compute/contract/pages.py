"""Keyset pages: what a list method takes and answers."""

from __future__ import annotations

from typing import Annotated, Final, Generic, TypeVar

from msgspec import Meta

from better_compute.contract.methods import Input, Output

#: Fields of :class:`PageInput` that say which page, not which list.
PAGE_FIELDS: Final = ("cursor", "limit")

#: A row's place in a list.
PageKey = tuple[str | int | None, ...]

_Item = TypeVar("_Item")


class PageInput(Input):
    """Base of a list method's input: where the page begins, and how many items it may have."""

    #: ``nextCursor`` of the page before; empty for the first page.
    cursor: Annotated[str, Meta(max_length=2_048)] = ""
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Page(Output, Generic[_Item]):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: list[_Item]
    next_cursor: str | None = None
