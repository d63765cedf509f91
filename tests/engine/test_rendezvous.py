"""Who should hold a lease: even, stable, and the same for everyone."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest

from better_compute.engine.rendezvous import assign, prefer

SHARDS = [f"shard:{number}" for number in range(256)]


def members(count: int) -> list[str]:
    return [str(UUID(int=number * 7919)) for number in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 20, 50])
def test_no_member_holds_more_than_a_quarter_above_the_even_share(count: int) -> None:
    owners = assign(SHARDS, members(count))
    assert sorted(owners) == sorted(SHARDS)
    most = max(list(owners.values()).count(member) for member in members(count))
    assert most <= max(1.25 * 256 / count, 256 / count + 1)


def test_the_order_of_members_does_not_matter() -> None:
    assert assign(SHARDS, members(7)) == assign(SHARDS, members(7)[::-1])


def test_a_join_moves_little_more_than_the_new_members_share() -> None:
    for before, after in pairwise([4, 5]):
        old, new = assign(SHARDS, members(before)), assign(SHARDS, members(after))
        moved = sum(old[name] != new[name] for name in SHARDS)
        assert moved <= 256 / after * 1.6


def test_without_members_nobody_owns_anything() -> None:
    assert assign(SHARDS, []) == {}
    assert prefer("singleton:x", []) is None
