"""What a watch does besides calling: tell what changed, how long to wait, and where it stands.

A watch over REST looks again and again and compares. What it has shown is its position, a text that a later watch
goes on from, so that a caller who was away sees what changed meanwhile and nothing twice.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from better_compute.client.attempts import TRANSIENT
from better_compute.client.errors import ApiError, ConnectionLost

Item = TypeVar("Item")

#: Most items of a list that is watched: each is remembered by its id and a digest.
MOST_ITEMS: Final = 10_000
#: How much longer the next wait is when nothing changed.
SLOWER: Final = 1.5
#: The id of an answer that is watched as a whole.
WHOLE: Final = ""

_deterministic: Final = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """How to watch.

    Parameters
    ----------
    every_s
        Seconds between two looks while something changes.
    at_most_s
        Seconds that the wait grows to while nothing does.
    since
        The ``position`` of an earlier watch of the same method and input: what that one showed is not shown again.
    patience_s
        Seconds for which the installation may be away or busy before the watch gives up.
    """

    every_s: float = 2.0
    at_most_s: float = 30.0
    since: str = ""
    patience_s: float = 300.0

    def __post_init__(self) -> None:
        if not 0 < self.every_s <= self.at_most_s:
            raise ValueError(
                f"every_s is {self.every_s} and at_most_s {self.at_most_s}: give 0 < every_s <= at_most_s."
            )


@dataclass(frozen=True, slots=True)
class Change(Generic[Item]):
    """What happened to one item of a list.

    ``item`` is None for one that is gone; ``before`` is what was shown last, None where an earlier watch showed it.
    """

    kind: Literal["added", "changed", "gone"]
    id: str
    item: Item | None
    before: Item | None = None


def digest(value: Any) -> str:
    """A short text that is another one when the value is."""
    return base64.urlsafe_b64encode(hashlib.sha256(_deterministic.encode(value)).digest()[:12]).decode()


class Shown:
    """What a watch has shown: a digest by id, and the items themselves as far as this watch saw them."""

    def __init__(self, method: str, input: Any, since: str) -> None:
        self._of = digest([method, input])
        self._digests: dict[str, str] = self._read(since) if since else {}
        self._items: dict[str, Any] = {}

    @property
    def position(self) -> str:
        """Where a later watch goes on."""
        text = _deterministic.encode([self._of, self._digests])
        return base64.urlsafe_b64encode(text).rstrip(b"=").decode()

    def _read(self, since: str) -> dict[str, str]:
        try:
            raw = base64.urlsafe_b64decode(since + "=" * (-len(since) % 4))
            of, digests = msgspec.json.decode(raw, type=tuple[str, dict[str, str]])
        except (binascii.Error, ValueError):
            raise ValueError(f"{since[:40]!r} is no position; give one as `watch.position` told it.") from None
        if of != self._of:
            raise ValueError("The position is another method's or another input's; watch without `since` once.")
        return digests

    def changes(self, found: Mapping[str, Any]) -> list[tuple[Change[Any], str]]:
        """What there is to show now that ``found`` is there, with the digest of each item."""
        gone = [Change("gone", id, None, self._items.get(id)) for id in self._digests if id not in found]
        pending: list[tuple[Change[Any], str]] = [(change, "") for change in gone]
        for id, item in found.items():
            seen, now = self._digests.get(id), digest(item)
            if seen != now:
                change = Change("added" if seen is None else "changed", id, item, self._items.get(id))
                pending.append((change, now))
            else:
                self._items[id] = item
        return pending

    def count(self, change: Change[Any], digest: str) -> None:
        """Count a change as shown."""
        if change.kind == "gone":
            self._digests.pop(change.id, None)
            self._items.pop(change.id, None)
        else:
            self._digests[change.id], self._items[change.id] = digest, change.item


def by_id(items: Sequence[Item], identify: Callable[[Item], str] | None) -> dict[str, Item]:
    """The items by what identifies them.

    Raises
    ------
    ValueError
        Where two items have one id, or there are more than :data:`MOST_ITEMS`.
    """
    found: dict[str, Item] = {}
    for item in items:
        id = identify(item) if identify is not None else _own_id(item)
        if id in found:
            raise ValueError(f"Two items are identified by {id!r}; let `identify` tell them apart.")
        found[id] = item
        if len(found) > MOST_ITEMS:
            raise ValueError(f"The list has more than {MOST_ITEMS} items; narrow it by its filters to watch it.")
    return found


def _own_id(item: Any) -> str:
    own = item.get("id") if isinstance(item, Mapping) else getattr(item, "id", None)
    if not isinstance(own, str):
        raise ValueError("The items have no id; say with `identify` what tells them apart.")
    return own


@dataclass(slots=True)
class Pace:
    """How long to wait before the next look."""

    watching: Watching
    wait_s: float = 0.0
    #: When the last look got an answer.
    answered_at: float = field(default_factory=time.monotonic)

    def after(self, changed: bool) -> float:
        """Seconds to wait after a look."""
        self.answered_at = time.monotonic()
        every, most = self.watching.every_s, self.watching.at_most_s
        self.wait_s = every if changed or not self.wait_s else min(most, self.wait_s * SLOWER)
        return self._jittered(self.wait_s)

    def after_failure(self, error: Exception) -> float:
        """Seconds to wait after a look that failed. Raises ``error`` when waiting cannot help, or has not."""
        asked = 0.0
        if isinstance(error, ApiError):
            if error.problem.status not in TRANSIENT and error.code != "CURSOR_EXPIRED":
                raise error
            asked = error.retry_after_s or 0.0
        elif not isinstance(error, ConnectionLost):
            raise error
        left = self.answered_at + self.watching.patience_s - time.monotonic()
        if max(left, 0.0) <= asked:
            raise error
        self.wait_s = min(self.watching.at_most_s, max(self.watching.every_s, self.wait_s * 2))
        return min(left, max(asked, self._jittered(self.wait_s)))

    def _jittered(self, seconds: float) -> float:
        # Watchers that began together must not look together for ever.
        return seconds * (0.75 + random.random() / 2)  # noqa: S311 - no secret
