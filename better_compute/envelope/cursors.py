"""Opaque cursors: where the next page begins, signed, bound to one list, and good for a while.

A cursor is base64url of ``key id (4 bytes) || HMAC-SHA256 (16 bytes) || JSON [expires at (ms), key...]``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode, Violation
from better_compute.contract.pages import PAGE_FIELDS, Page, PageInput, PageKey
from better_compute.engine import keys

PURPOSE: Final = "cursor"
#: Most rows that one page looks at, shown or not, so that a caller who sees few does not scan a table.
LOOKED_AT: Final = 1_000

_Row = TypeVar("_Row")
_Item = TypeVar("_Item")
_MAC: Final = 16
_deterministic = msgspec.json.Encoder(order="deterministic")


class _Content(msgspec.Struct, array_like=True):
    expires_at_ms: int
    key: list[str | int | None]


@dataclass(frozen=True, slots=True)
class Cursors:
    """Makes and reads the cursors of one call: of its method, tenant and filters."""

    method: str
    tenant_id: str | None
    at: datetime

    def page(
        self,
        input: PageInput,
        read: Callable[[PageKey | None, int], Sequence[_Row]],
        *,
        key: Callable[[_Row], PageKey],
        show: Callable[[_Row], _Item | None],
    ) -> Page[_Item]:
        """One page; see :meth:`better_compute.contract.contexts.MethodContext.page`."""
        after = self.read(input)
        items: list[_Item] = []
        looked_at = 0
        while True:
            # One more than is asked for tells whether there is another page.
            rows = read(after, input.limit + 1)
            for row in rows:
                if after is not None and (len(items) == input.limit or looked_at == LOOKED_AT):
                    return Page(items=items, next_cursor=self.make(input, after))
                after, looked_at = key(row), looked_at + 1
                item = show(row)
                if item is not None:
                    items.append(item)
            if len(rows) <= input.limit:
                return Page(items=items, next_cursor=None)

    def make(self, input: PageInput, after: PageKey) -> str:
        """The cursor of the page that begins after ``after``."""
        signing = keys.keys_or_django(PURPOSE)[0]
        expires_at_ms = int(self.at.timestamp() * 1000) + conf.current().call.cursor_lifetime_ms
        content = msgspec.json.encode(_Content(expires_at_ms, list(after)))
        raw = bytes.fromhex(signing.id) + self._mac(signing, input, content) + content
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    def read(self, input: PageInput) -> PageKey | None:
        """Where the page begins, None for the first.

        Raises
        ------
        ComputeError
            INVALID_INPUT for what is no cursor of this list; CURSOR_EXPIRED for one that is too old.
        """
        if not input.cursor:
            return None
        try:
            raw = base64.urlsafe_b64decode(input.cursor + "=" * (-len(input.cursor) % 4))
        except (binascii.Error, ValueError):
            raise _foreign() from None
        id, mac, content = raw[:4].hex(), raw[4 : 4 + _MAC], raw[4 + _MAC :]
        signing = next((each for each in keys.keys_or_django(PURPOSE) if each.id == id), None)
        if signing is None or not hmac.compare_digest(mac, self._mac(signing, input, content)):
            raise _foreign()
        found = msgspec.json.decode(content, type=_Content)
        if found.expires_at_ms <= self.at.timestamp() * 1000:
            raise ComputeError(
                ErrorCode.CURSOR_EXPIRED,
                "The cursor is older than the list keeps it.",
                mend="Begin again without a cursor.",
            )
        return tuple(found.key)

    def _mac(self, key: keys.Key, input: PageInput, content: bytes) -> bytes:
        filters = msgspec.to_builtins(input)
        for name in PAGE_FIELDS:
            filters.pop(name, None)
        scope = _deterministic.encode([self.method, self.tenant_id, filters])
        return hmac.digest(key.material, hashlib.sha256(scope).digest() + content, "sha256")[:_MAC]


def _foreign() -> ComputeError:
    return ComputeError(
        ErrorCode.INVALID_INPUT,
        "The cursor is none of this list.",
        mend="Send the nextCursor of this method unchanged, with the same filters; or begin without one.",
        violations=[Violation("/cursor", "It is no cursor of this list.")],
    )
