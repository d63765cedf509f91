"""``tenants.*``: the states of tenants and how far a teardown is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

from better_compute import (
    ComputeViewSet,
    Input,
    Meta,
    MethodContext,
    Output,
    Page,
    PageInput,
    PageKey,
    Resource,
    TenantId,
    compute_method,
)

from . import gate, records
from .records import Record
from .states import State, Verb

READ: Final = "compute:tenants:read"
#: Blanks alone are none.
Reason = Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]


class TenantInput(Input):
    """A tenant."""

    tenant_id: TenantId


class ChangeInput(Input):
    """A tenant and why its state changes; the reason is shown to the tenant."""

    tenant_id: TenantId
    reason: Reason


class ListInput(PageInput):
    """Which state, or all."""

    state: Literal["active", "suspended", "deleting", "torn_down"] | None = None


class Tenant(Output):
    """A tenant's state; ``changed_at`` is null for one whose state was never changed."""

    tenant_id: str
    state: str
    reason: str
    changed_at: datetime | None
    teardown_done_at: datetime | None


class BlockedBy(Output):
    """A module that has not let go of the tenant, how to mend it, and since when it answers so."""

    module: str
    answer: str
    message: str
    mend: str
    since: datetime
    passes: int


class DeletionStatus(Output):
    """How far a teardown is. ``phase`` is the state, or ``blocked`` while a hook fails."""

    tenant_id: str
    phase: str
    reason: str
    started_at: datetime | None
    passes: int
    last_pass_at: datetime | None
    teardown_done_at: datetime | None
    blockers: list[BlockedBy]


def _tenant(input: TenantInput | ChangeInput) -> Resource:
    return Resource("tenant", input.tenant_id)


class Tenants(ComputeViewSet):
    """Tenants and their states."""

    @compute_method(action="compute:tenants:suspend", kind="mutation", resource=_tenant, also_while="any")
    def suspend(self, ctx: MethodContext, input: ChangeInput) -> Tenant:
        """Refuse every change to a tenant from now on; what runs goes on running, and reads are allowed."""
        return _shown(gate.change(ctx, input.tenant_id, Verb.SUSPEND, input.reason))

    @compute_method(action="compute:tenants:suspend", kind="mutation", resource=_tenant, also_while="any")
    def resume(self, ctx: MethodContext, input: ChangeInput) -> Tenant:
        """Let a suspended tenant change things again."""
        return _shown(gate.change(ctx, input.tenant_id, Verb.RESUME, input.reason))

    @compute_method(action="compute:tenants:delete", kind="mutation", resource=_tenant, also_while="any")
    def delete(self, ctx: MethodContext, input: ChangeInput) -> Tenant:
        """Begin the teardown of a tenant: nothing can be added to it, and every module ends what it holds for it."""
        return _shown(gate.change(ctx, input.tenant_id, Verb.DELETE, input.reason))

    @compute_method(action=READ, kind="query", resource=_tenant, also_while="any")
    def get(self, ctx: MethodContext, input: TenantInput) -> Tenant:
        """Tell a tenant's state."""
        return _shown(records.read(ctx, input.tenant_id))

    @compute_method(action=READ, kind="query", resource=_tenant, also_while="any")
    def deletion_status(self, ctx: MethodContext, input: TenantInput) -> DeletionStatus:
        """Tell how far a tenant's teardown is, and which modules have not let go of it."""
        record = records.read(ctx, input.tenant_id)
        failing = any(blocker.answer != "SYNC_AGAIN" for blocker in record.blockers)
        dying = record.state in (State.DELETING, State.TORN_DOWN)
        return DeletionStatus(
            tenant_id=record.tenant_id,
            phase="blocked" if record.state is State.DELETING and failing else record.state.value,
            reason=record.reason,
            started_at=record.changed_at if dying else None,
            passes=record.passes,
            last_pass_at=record.last_pass_at,
            teardown_done_at=record.teardown_done_at,
            blockers=[
                BlockedBy(
                    module=each.module,
                    answer=each.answer,
                    message=each.message,
                    mend=each.mend,
                    since=each.since,
                    passes=each.passes,
                )
                for each in record.blockers
            ],
        )

    @compute_method(action=READ, kind="query", resource=lambda _: Resource("system", "tenants"))
    def list(self, ctx: MethodContext, input: ListInput) -> Page[Tenant]:
        """List tenants whose state was ever changed by id, except those that `get` would refuse to this caller."""
        state = State(input.state) if input.state else None

        def read(after: PageKey | None, limit: int) -> Sequence[Record]:
            return records.page(ctx, state=state, after="" if after is None else str(after[0]), limit=limit)

        def show(record: Record) -> Tenant | None:
            id = record.tenant_id
            return _shown(record) if ctx.permits(READ, Resource("tenant", id), id) else None

        return ctx.page(input, read, key=lambda record: (record.tenant_id,), show=show)


def _shown(record: Record) -> Tenant:
    return Tenant(
        tenant_id=record.tenant_id,
        state=record.state.value,
        reason=record.reason,
        changed_at=record.changed_at,
        teardown_done_at=record.teardown_done_at,
    )
