"""``breakGlass.*``: everything in a tenant, for a while, with a reason and an alarm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from better_compute import (
    ComputeViewSet,
    Input,
    Meta,
    MethodContext,
    Page,
    PageInput,
    PageKey,
    TenantId,
    compute_method,
)
from compute_modules.iam import break_glass, grants
from compute_modules.iam.grants import Record

from .grants import Grant, GrantInput, of_grant, shown
from .inputs import READ, TAKING_AWAY, Reason, behind, of_tenant

BREAK: Final = "compute:iam:break-glass"


class ActivateInput(Input):
    """Where, why, and for how long; the installation bounds the minutes."""

    tenant_id: TenantId
    reason: Reason
    minutes: Annotated[int, Meta(ge=1, le=1_440)] = 30


class ListInput(PageInput, kw_only=True):
    """A tenant's log."""

    tenant_id: TenantId


class BreakGlass(ComputeViewSet):
    """Emergencies."""

    @compute_method(action=BREAK, kind="mutation", resource=of_tenant, also_while=TAKING_AWAY)
    def activate(self, ctx: MethodContext, input: ActivateInput) -> Grant:
        """Become an owner of the tenant for some minutes; the event iam.break-glass-activated is the alarm."""
        return shown(break_glass.activate(ctx, input.tenant_id, reason=input.reason, minutes=input.minutes))

    @compute_method(action=BREAK, kind="mutation", resource=of_grant, also_while=TAKING_AWAY)
    def end(self, ctx: MethodContext, input: GrantInput) -> Grant:
        """End it before its time."""
        return shown(break_glass.end(ctx, input.grant_id))

    @compute_method(action=READ, kind="query", resource=of_tenant, also_while="any")
    def list(self, ctx: MethodContext, input: ListInput) -> Page[Grant]:
        """Show who broke the glass, when and why; also of a tenant that is gone."""

        def read(after: PageKey | None, limit: int) -> Sequence[Record]:
            return grants.page(ctx, input.tenant_id, break_glass=True, after=behind(after), limit=limit)

        return ctx.page(input, read, key=lambda record: (record.id,), show=shown)
