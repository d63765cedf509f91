"""Heals missed wake-ups of sharded reconcilers: every key of this member's shards comes by once in a while.

Keys are inserted only where they are not queued, so resync defeats no backoff, and spread over the jitter, so
that a hundred thousand of them do not come at once. Where the ids of nodes and pools stand is told by whoever serves
the port ``key-source``, which is the inventory.
"""

from __future__ import annotations

import secrets
from typing import Any, Final, Literal

from better_compute.contract.ports import KeySource
from better_compute.engine.contexts import served_port
from better_compute.engine.membership import Membership
from better_compute.engine.periodic import drop, seed
from better_compute.engine.shards import shard_of
from better_compute.store import work

#: Keys read, and written, in one statement.
PAGE: Final = 500

_spread: Final = secrets.SystemRandom()


def next_in_ms(every_ms: int) -> int:
    """Milliseconds until the next resync: the interval plus up to as much jitter."""
    return every_ms + _spread.randrange(every_ms + 1)


def resync(cursor: Any, membership: Membership, *, spread_ms: int) -> int:
    """Enqueue every key of the member's shards that is not queued, and write its periodic keys.

    Returns how many keys of the shards were not queued.
    """
    seed(cursor, membership.reconcilers.values())
    drop(cursor, membership.reconcilers.values())
    kinds: dict[Literal["node", "pool"], list[str]] = {}
    for name, reconciler in membership.reconcilers.items():
        if reconciler.shard_by != "none":
            kinds.setdefault(reconciler.shard_by, []).append(name)
    held = {hold.shard for hold in tuple(membership.holds.values()) if hold.shard is not None and not hold.leaving}
    source: KeySource | None = served_port("key-source")
    if source is None or not held:
        return 0
    return sum(_resync(cursor, names, held, source, by, spread_ms) for by, names in kinds.items())


def _resync(
    cursor: Any,
    kinds: list[str],
    held: set[int],
    source: KeySource,
    shard_by: Literal["node", "pool"],
    spread_ms: int,
) -> int:
    missed, after = 0, ""
    while True:
        keys = source.keys(shard_by, after, PAGE)
        if not keys:
            return missed
        after = keys[-1]
        rows = [
            work.WorkRow(kind, key, shard, _spread.randrange(spread_ms + 1))
            for key in keys
            if (shard := shard_of(key)) in held
            for kind in kinds
        ]
        missed += work.insert_missing(cursor, rows)
