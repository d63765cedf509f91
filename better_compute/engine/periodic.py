"""Periodic keys: written once, and then they stay in the queue and come back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from better_compute.contract.durations import milliseconds
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine.shards import shard_for
from better_compute.store import work


def seed(cursor: Any, reconcilers: Iterable[Reconciler]) -> None:
    """Make every periodic key of ``reconcilers`` exist, due at once the first time; queued ones keep their time."""
    hosted = list(reconcilers)
    every = {(each.name, key.key): milliseconds(key.every) for each in hosted for key in each.periodic}
    rows = [work.WorkRow(each.name, key.key, shard_for(each, key.key)) for each in hosted for key in each.periodic]
    work.seed_periodic(cursor, [each.name for each in hosted], rows, every)
