"""Periodic keys: written once, and then they stay in the queue and come back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from better_compute.contract.durations import milliseconds
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine.shards import shard_for
from better_compute.store import periodic, work


def declared(reconcilers: Iterable[Reconciler]) -> list[str]:
    """How a member's row says which periodic keys ``reconcilers`` have."""
    return [periodic.declared(each.name, key.key) for each in reconcilers for key in each.periodic]


def seed(cursor: Any, reconcilers: Iterable[Reconciler]) -> None:
    """Make every periodic key of ``reconcilers`` exist, due at once the first time; queued ones keep their time."""
    hosted = list(reconcilers)
    every = {(each.name, key.key): milliseconds(key.every) for each in hosted for key in each.periodic}
    periodic.seed(cursor, _rows(hosted), every)


def drop(cursor: Any, reconcilers: Iterable[Reconciler]) -> None:
    """Let keys that ``reconcilers`` had in an earlier release end, once none of its workers lives."""
    hosted = list(reconcilers)
    periodic.drop(cursor, [each.name for each in hosted], _rows(hosted))


def _rows(reconcilers: Iterable[Reconciler]) -> list[work.WorkRow]:
    return [work.WorkRow(each.name, key.key, shard_for(each, key.key)) for each in reconcilers for key in each.periodic]
