"""The core's own reconcilers: retention of what nobody needs any more, and the queue's history."""

from __future__ import annotations

from typing import Final

from better_compute import DONE, SYNC_AGAIN, Outcome, Periodic, ReconcileContext, Reconciler, conf
from better_compute.store import history, idempotency, overview, retention

#: Rows deleted in one transaction, so that no run holds locks for long.
PURGE_ROWS: Final = 1_000
#: Partitions made or dropped in one run, each in a transaction of its own.
STEPS: Final = 20


class IdempotencyRetention(Reconciler):
    """Deletes answers kept for Idempotency-Key once they have expired."""

    name = "core.idempotency-retention"
    shard_by = "none"
    periodic = (Periodic("purge", every="10m"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Delete one batch; more are left as long as a batch is full."""
        with ctx.sql.transaction():
            return SYNC_AGAIN if idempotency.purge(PURGE_ROWS) == PURGE_ROWS else DONE


class TokenRetention(Reconciler):
    """Deletes tokens that ended ``COMPUTE["RETENTION"]["TOKENS_MS"]`` ago, and with them when they were last used."""

    name = "core.token-retention"
    shard_by = "none"
    periodic = (Periodic("purge", every="1h"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Delete one batch; more are left as long as a batch is full."""
        keep_ms = conf.current().retention.tokens_ms
        if not keep_ms:
            return DONE
        with ctx.sql.transaction():
            return SYNC_AGAIN if retention.purge_tokens(keep_ms, PURGE_ROWS) == PURGE_ROWS else DONE


class PartitionRetention(Reconciler):
    """Makes the partitions of outbox and audit ahead of time, and drops those that are old enough.

    Key: the table. A lock that cannot be had at once is left for the next time; calls come first.
    """

    name = "core.partition-retention"
    shard_by = "none"
    periodic = (Periodic("compute_outbox", every="10m"), Periodic("compute_audit_events", every="10m"))

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Take steps until there is nothing to do, at most :data:`STEPS`."""
        settings = conf.current().retention
        keep_ms = {"compute_outbox": settings.outbox_ms, "compute_audit_events": settings.audit_ms}.get(key, 0)
        for _ in range(STEPS):
            if ctx.signal.aborted:
                return SYNC_AGAIN
            with ctx.sql.transaction():
                step = retention.step(key, keep_ms or None)
            if step is None:
                return DONE
            if step.did == "BUSY":
                ctx.log.info("the partitions of %s are in use; they are looked at again later", key)
                return DONE
            ctx.log.info("partition %s: %s", step.partition, step.did.lower())
        return SYNC_AGAIN


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
