"""``compute.jobs[name].tick()``: step a reconciler without threads, timers or a broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db import connections

from better_compute import conf, registry
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.module import ModuleSpec
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine import runs
from better_compute.engine.membership import Membership
from better_compute.engine.periodic import seed
from better_compute.engine.shards import UNSHARDED
from better_compute.store import claims


@dataclass(frozen=True, slots=True)
class Job:
    """One hosted reconciler."""

    spec: ModuleSpec
    reconciler: Reconciler

    def tick(self) -> int:
        """Run exactly one batch of due keys on this thread and connection, under a lease of its own.

        Returns how many keys ran. A run that raises is logged, and retried with backoff as in a worker.

        Raises
        ------
        ComputeError
            CONFLICT when a live worker holds the reconciler's lease.
        """
        settings = conf.current()
        member = Membership(self.reconciler.role, {self.reconciler.name: self.reconciler})
        with connections[settings.database].cursor() as cursor:
            seed(cursor, [self.reconciler])
            member.join(cursor)
            try:
                member.bury(cursor)
                if not member.take(cursor, list(member.lease_names())):
                    raise ComputeError(
                        ErrorCode.CONFLICT,
                        f"A live worker holds the lease of {self.reconciler.name!r}, so tick() cannot run it.",
                        mend="Stop that worker, or let it run the key.",
                    )
                return self.batch(cursor, member, settings.worker.batch)
            finally:
                member.leave(cursor)

    def batch(self, cursor: object, member: Membership, limit: int) -> int:
        """Claim up to ``limit`` due keys under what ``member`` holds, run them here, write how they ended.

        ``cursor`` is for the queue; a run uses the thread's own connection. Returns how many keys ran.
        """
        holds = {UNSHARDED if hold.shard is None else hold.shard: hold for hold in member.holds_of(self.reconciler)}
        claimed = claims.claim(cursor, self.reconciler.name, sorted(holds), running=[], limit=limit, per_shard=limit)
        batch = runs.run_keys(
            self.spec,
            self.reconciler,
            [(key, holds[key.shard]) for key in claimed],
            may_start=lambda hold: not hold.abort.aborted,
        )
        batch.write(cursor, member.id)
        return batch.ran


class Jobs(Mapping[str, Job]):
    """Every hosted reconciler by name."""

    def __getitem__(self, name: str) -> Job:
        hosted = registry.current()
        return Job(hosted.reconciler_owner[name], hosted.reconcilers[name])

    def __iter__(self) -> Iterator[str]:
        return iter(registry.current().reconcilers)

    def __len__(self) -> int:
        return len(registry.current().reconcilers)
