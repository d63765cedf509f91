"""What a reconciler promises and what each of its answers means.

A reconciler is level-triggered: it is given a key, looks at the state behind it and converges it. It may
be called again for a key that needs nothing, and after a crash for a key it had already served; it must
then find nothing to do. Wake-ups coalesce: a key enqueued ten times while it waits runs once, and a key
enqueued while it runs runs once more afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

from better_compute.contract.contexts import ReconcileContext
from better_compute.contract.outcomes import DONE, Outcome

ShardBy = Literal["node", "pool", "none"]
Role = Literal["controllers", "scheduler"]


@dataclass(frozen=True, slots=True)
class Periodic:
    """A key that comes back ``every`` after the end of each run (at least 1 s), besides any enqueue."""

    key: str
    every: str | timedelta


class Reconciler(ABC):
    """Converge one key at a time under a lease.

    ``name`` is also the work kind: ``ctx.work.enqueue("acme.widgets", key)`` wakes it. ``shard_by`` says
    which worker runs a key: ``node`` and ``pool`` keys go to the holder of the key's shard, ``none`` means
    one worker at a time runs the whole reconciler. To run many keys in one call, write a :class:`BatchReconciler`.
    """

    name: ClassVar[str]
    shard_by: ClassVar[ShardBy] = "none"
    periodic: ClassVar[Sequence[Periodic]] = ()
    role: ClassVar[Role] = "controllers"

    @abstractmethod
    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Converge ``key`` and return DONE or SYNC_AGAIN; raise to be retried with backoff."""


class BatchReconciler(Reconciler):
    """A reconciler that converges many keys in one call, for work that one statement can do for all."""

    @abstractmethod
    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        """Converge ``keys``; a key missing from the answer is DONE. Raising fails every key of the call."""

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Converge one key through :meth:`run_many`."""
        return self.run_many(ctx, [key]).get(key, DONE)
