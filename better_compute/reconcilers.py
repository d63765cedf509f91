"""The core's own reconcilers: retention of what nobody needs any more."""

from __future__ import annotations

from typing import Final

from better_compute import DONE, SYNC_AGAIN, Outcome, Periodic, ReconcileContext, Reconciler
from better_compute.store import idempotency

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
