"""Who should hold a lease: rendezvous hashing with bounded load. Every member computes the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import ceil
from typing import Final

#: No member gets more than this times the even share.
MOST: Final = 1.125


def weight(member: str, lease: str) -> bytes:
    """How strongly ``member`` is drawn to ``lease``."""
    return blake2b(f"{member}\0{lease}".encode(), digest_size=8).digest()


def prefer(lease: str, members: Iterable[str]) -> str | None:
    """The member with the highest weight for ``lease``; None without members."""
    return max(members, key=lambda member: weight(member, lease), default=None)


def assign(names: Sequence[str], members: Sequence[str]) -> dict[str, str]:
    """Give every lease to the strongest drawn member that is not full; a join or leave moves few of them."""
    return _assign(tuple(names), tuple(sorted(members)))


@lru_cache(maxsize=8)
def _assign(names: tuple[str, ...], members: tuple[str, ...]) -> dict[str, str]:
    if not members:
        return {}
    room = dict.fromkeys(members, ceil(len(names) / len(members) * MOST))
    owners: dict[str, str] = {}
    # Pairs by falling weight: the strongest draws are served first, whoever they belong to.
    for _, name, member in sorted(((weight(m, n), n, m) for n in names for m in members), reverse=True):
        if name not in owners and room[member] > 0:
            owners[name] = member
            room[member] -= 1
    return owners
