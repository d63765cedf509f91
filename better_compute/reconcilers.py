"""The core's own reconcilers: retention of what nobody needs any more, and the queue's history."""

from __future__ import annotations

from typing import Final

from better_compute import DONE, SYNC_AGAIN, Outcome, Periodic, ReconcileContext, Reconciler
from better_compute.store import history, idempotency, overview

#: Rows deleted in one transaction, so that no run holds locks for long.
PURGE_ROWS: Final = 1_000


class IdempotencyRetention(Reconciler):
    """Deletes answers kept for Idempotency-Key once they have expired."""

    name = "core.idempotency-retention"
    shard_by = "none"
    periodic = (Periodic("purge", every="10m"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Delete one batch; more are left as long as a batch is full."""
        with ctx.sql.transaction():
            return SYNC_AGAIN if idempotency.purge(PURGE_ROWS) == PURGE_ROWS else DONE


class QueueHistory(Reconciler):
    """Writes down once a minute how deep every queue is, for the picture on the operator's pages, and keeps two days.

    It counts up to 50,000 keys of a kind by index, within the time that an operator's page may take.
    """

    name = "core.queue-history"
    shard_by = "none"
    periodic = (Periodic("sample", every="1m"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Take one sample."""
        with ctx.sql.transaction(), overview.bounded():
            history.record(self.name)
        return DONE
