"""Following tenants that are kept elsewhere: each that an event spoke of, and now and then all of them."""

from __future__ import annotations

from typing import Final

from better_compute import DONE, Outcome, Periodic, ReconcileContext, Reconciler

from . import following, inbox, outside
from .outside import TenantSource

#: The sweep's key, which no tenant's id can be.
SWEEP: Final = "*"
#: Tenants that one question asks for.
_PAGE: Final = 500


class TenantFollower(Reconciler):
    """Key: a tenant's id, or the sweep's. Without ``COMPUTE["iam"]["TENANT_SOURCE"]`` there is nothing to follow.

    The source is asked outside of any transaction. A change after the answer was given dirties the key again or is
    met by the next sweep.
    """

    name = inbox.KIND
    shard_by = "none"
    periodic = (Periodic(SWEEP, every="5m"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Re-read a tenant, or wake each that is otherwise here than outside."""
        source = outside.source(ctx)
        if source is not None:
            (self._sweep if key == SWEEP else self._follow)(ctx, source, key)
        return DONE

    def _follow(self, ctx: ReconcileContext, source: TenantSource, key: str) -> None:
        following.follow(ctx, source, key)

    def _sweep(self, ctx: ReconcileContext, source: TenantSource, key: str) -> None:
        after = ""
        while not ctx.signal.aborted:
            page = source.tenants(after, _PAGE)
            ids = [each.id for each in page]
            if ids != sorted(set(ids)) or (ids and ids[0] <= after):
                raise ValueError(
                    f"The tenant source answered {', '.join(map(repr, ids[:3]))}, ... after {after!r}:"
                    " ids must come once and by code point."
                )
            last = ids[-1] if len(page) == _PAGE else None
            with ctx.sql.transaction():
                ctx.work.enqueue_many(self.name, following.differing(ctx, page, after, last))
            if last is None:
                break
            after = last
        with ctx.sql.transaction():
            inbox.forget(ctx)
