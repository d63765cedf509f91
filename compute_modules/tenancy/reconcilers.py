"""The teardown of deleted tenants: every module's ``tenant_deleted``, until all answer DONE in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from better_compute import (
    DONE,
    SYNC_AGAIN,
    LeaseLost,
    Outcome,
    Periodic,
    ReconcileContext,
    Reconciler,
    TenantHook,
)

from . import blockers, records
from .blockers import Blocker
from .states import State

#: The sweep's key. No tenant id can be this, so a tenant named "sweep" is torn down like any other.
SWEEP: Final = "*"
#: Most tenants that one transaction of the sweep wakes.
_WOKEN: Final = 1_000
#: Passes of one teardown that may follow each other at once because rows were written; then the sweep sets the pace.
_BRISK_PASSES: Final = 10_000
#: Between brisk passes, so that a large teardown leaves the database to others.
_PAUSE_S: Final = 0.02

# Counts of this session that were not handed to the statistics yet; only their difference says something.
_WRITTEN: Final = "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) AS n FROM pg_stat_xact_user_tables"


class TenancyReconciler(Reconciler):
    """Key: a tenant's id, or the sweep's.

    A pass calls every hook once, each in a fenced transaction of its own, also those that answered DONE before. A
    pass in which all answer DONE ends the teardown. A hook that raises or answers SYNC_AGAIN is a blocker by name;
    the others are called nevertheless. While rows are being written the next pass follows at once, and so it does
    when one blocker is left that was not alone before: it may have waited for the others. What merely waits is asked
    again by the sweep.
    """

    name = "tenancy"
    shard_by = "none"
    periodic = (Periodic(SWEEP, every="30s"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Make one pass for a tenant, or wake every tenant that needs one."""
        return self._sweep(ctx) if key == SWEEP else self._pass(ctx, key)

    def _sweep(self, ctx: ReconcileContext) -> Outcome:
        after = ""
        while not ctx.signal.aborted:
            with ctx.sql.transaction():
                tenants = records.dying(ctx, after, _WOKEN)
                ctx.work.enqueue_many(self.name, tenants)
            if len(tenants) < _WOKEN:
                break
            after = tenants[-1]
        return DONE

    def _pass(self, ctx: ReconcileContext, tenant_id: str) -> Outcome:
        record = records.read(ctx, tenant_id)
        if record.state is not State.DELETING:
            return DONE
        found: list[Blocker] = []
        progress = False
        for hook in ctx.hosted.tenant_hooks():
            if ctx.signal.aborted:
                return SYNC_AGAIN
            blocker, wrote = self._ask(ctx, hook, tenant_id)
            if blocker is not None:
                found.append(blocker)
                progress = progress or wrote
        # With nothing found, a call that was admitted meanwhile is all that kept it from ending.
        progress = progress or not found or _alone_now(record.blockers, found)
        with ctx.sql.transaction():
            state = records.write_pass(ctx, record, blockers.merged(record.blockers, found))
        if state is State.DELETING and progress and record.passes < _BRISK_PASSES:
            ctx.signal.wait(_PAUSE_S)
            return SYNC_AGAIN
        return DONE

    def _ask(self, ctx: ReconcileContext, hook: TenantHook, tenant_id: str) -> tuple[Blocker | None, bool]:
        """Call one hook; what it blocks, if anything, and whether it wrote rows."""
        entered = False
        try:
            with ctx.sql.transaction():
                entered = True
                before = _rows_written(ctx)
                answer = hook(tenant_id)
                if answer == DONE:
                    return None, False
                at, wrote = ctx.clock.now(), _rows_written(ctx) > before
        except LeaseLost:
            raise
        except Exception as error:
            if not entered:
                # The database is away or the connection is dead: no hook's fault, and the run is retried.
                raise
            ctx.log.exception("tenant_deleted of module %s failed for tenant %s", hook.module, tenant_id)
            return blockers.raised(hook.module, error, ctx.clock.now()), False
        if answer == SYNC_AGAIN:
            return blockers.waiting(hook.module, at), wrote
        return blockers.invalid(hook.module, answer, at), False


def _alone_now(before: Sequence[Blocker], now: Sequence[Blocker]) -> bool:
    """Whether one module waits alone since this pass."""
    return len(now) == 1 and now[0].answer == "SYNC_AGAIN" and [each.module for each in before] != [now[0].module]


def _rows_written(ctx: ReconcileContext) -> int:
    return int(ctx.sql.query(_WRITTEN).rows[0]["n"])
