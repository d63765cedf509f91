"""NOTIFY and LISTEN: hints that say where work is due. Never sent inside a transaction that enqueues."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

#: Channel that says which (kind, shard) pairs have due work.
WORK_CHANNEL: Final = "compute_work"
#: What is sent instead of pairs when they are too many: look everywhere.
EVERYWHERE: Final = "*"
#: A payload must stay under 8,000 bytes.
MOST_PAIRS: Final = 80

Pair = tuple[str, int]


def encode(pairs: Iterable[Pair]) -> str:
    """One payload for ``pairs``."""
    listed = sorted(set(pairs))
    return EVERYWHERE if len(listed) > MOST_PAIRS else "\n".join(f"{kind} {shard}" for kind, shard in listed)


def decode(payload: str) -> list[Pair] | None:
    """The pairs of a payload; None means everywhere, and so does what cannot be read: anybody may notify."""
    if payload == EVERYWHERE:
        return None
    try:
        return [(kind, int(shard)) for kind, _, shard in (line.rpartition(" ") for line in payload.splitlines())]
    except ValueError:
        return None


def notify(cursor: Any, channel: str, payload: str = "") -> None:
    """Send one notification; on an autocommit connection it goes out at once."""
    cursor.execute("SELECT pg_notify(%s, %s)", [channel, payload])


def listen(cursor: Any, channels: Collection[str]) -> None:
    """Listen on ``channels``."""
    for channel in channels:
        cursor.execute(f'LISTEN "{channel}"')


def received(connection: Any, timeout: float) -> Iterator[tuple[str, str]]:
    """Notifications as (channel, payload) until one batch has come or ``timeout`` seconds are over."""
    for notification in connection.notifies(timeout=timeout, stop_after=1):
        yield notification.channel, notification.payload
