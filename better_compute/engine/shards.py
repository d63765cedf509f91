"""Which shard a key lands on."""

from __future__ import annotations

from typing import Final

from better_compute.contract.reconcilers import Reconciler

SHARDS: Final = 256
#: The shard of a reconciler that is not sharded.
UNSHARDED: Final = -1


def shard_of(key: str) -> int:
    """FNV-1a over the key's UTF-8 bytes, modulo 256.

    Modulo 256 only the low byte of the hash and of the prime matter, so one byte of state is enough.
    """
    state = 0xC5
    for byte in key.encode():
        state = ((state ^ byte) * 0x93) & 0xFF
    return state


def shard_for(reconciler: Reconciler, key: str) -> int:
    """The shard of ``key`` in ``reconciler``'s queue."""
    return UNSHARDED if reconciler.shard_by == "none" else shard_of(key)
