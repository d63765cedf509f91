"""``breakGlass.*``: everything in a tenant, for a while, with a reason and an alarm."""

from __future__ import annotations

from typing import Annotated, Final

from better_compute import ComputeViewSet, Input, Meta, MethodContext, Output, TenantId, compute_method
from compute_modules.iam import break_glass, grants

from .grants import Grant, GrantInput, of_grant, shown
from .inputs import READ, TAKING_AWAY, Limit, Reason, Uuid, of_tenant

BREAK: Final = "compute:iam:break-glass"


class ActivateInput(Input):
    """Where, why, and for how long; the installation bounds the minutes."""

    tenant_id: TenantId
    reason: Reason
    minutes: Annotated[int, Meta(ge=1, le=1_440)] = 30


class ListInput(Input):
    """A tenant's log; a page begins after this grant."""

    tenant_id: TenantId
    after: Uuid | None = None
    limit: Limit = 50


class BreakGlassLog(Output):
    """Every time the glass was broken there; ``next`` is the ``after`` of the next page, null on the last one."""

    grants: list[Grant]
    next: str | None


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

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def list(self, ctx: MethodContext, input: ListInput) -> BreakGlassLog:
        """Show who broke the glass, when and why."""
        found = grants.page(ctx, input.tenant_id, break_glass=True, after=input.after, limit=input.limit)
        page = [shown(record) for record in found[: input.limit]]
        return BreakGlassLog(grants=page, next=page[-1].id if len(found) > input.limit else None)
