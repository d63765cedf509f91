"""``grants.*``: who has what, where, until when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

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
from compute_modules.iam import grants
from compute_modules.iam.grants import Record
from compute_modules.iam.new_grants import NewGrant

from .inputs import MANAGE, READ, TAKING_AWAY, Pattern, PrincipalId, ResourceRef, Uuid, behind, of_tenant


class CreateInput(Input):
    """A role, or patterns of actions; in a tenant (and below it, with `inherit`), or on one resource of it."""

    tenant_id: TenantId
    principal: PrincipalId
    effect: Literal["permit", "forbid"] = "permit"
    role: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    actions: Annotated[list[Pattern], Meta(min_length=1, max_length=100)] | None = None
    resource: ResourceRef | None = None
    inherit: bool = False
    starts_at: datetime | None = None
    expires_at: datetime | None = None
    reason: Annotated[str, Meta(max_length=500)] = ""


class GrantInput(Input):
    """A grant."""

    grant_id: Uuid


class ListInput(PageInput, kw_only=True):
    """A tenant's own grants, of one principal if named."""

    tenant_id: TenantId
    principal: PrincipalId | None = None
    role: Annotated[str, Meta(max_length=255)] | None = None
    state: Literal["pending", "active", "expired", "revoked"] | None = None


class Grant(Output):
    """A grant and its state by the database's clock."""

    id: str
    tenant_id: str
    principal: str
    effect: str
    role: str
    actions: list[str]
    resource_type: str
    resource_id: str
    inherit: bool
    state: str
    starts_at: datetime | None
    expires_at: datetime | None
    reason: str
    break_glass: bool
    created_at: datetime
    created_by: str
    revoked_at: datetime | None
    revoked_by: str


def shown(record: Record) -> Grant:
    """A grant as it is answered."""
    row = record.row
    return Grant(
        id=record.id,
        tenant_id=row["tenant_id"],
        principal=row["principal_id"],
        effect=row["effect"],
        role=row["role"],
        actions=record.patterns,
        resource_type=row["resource_type"],
        resource_id=row["resource_id"],
        inherit=row["inherit"],
        state=record.state.value,
        starts_at=row["starts_at"],
        expires_at=row["expires_at"],
        reason=row["reason"],
        break_glass=row["break_glass"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        revoked_at=row["revoked_at"],
        revoked_by=row["revoked_by"],
    )


def of_grant(input: GrantInput) -> Resource:
    """The grant that the input names."""
    return Resource("iam-grant", input.grant_id)


class Grants(ComputeViewSet):
    """Permits and forbids."""

    @compute_method(action=MANAGE, kind="mutation", resource=of_tenant)
    def create(self, ctx: MethodContext, input: CreateInput) -> Grant:
        """Give somebody a role or actions, never more than the caller holds, or forbid somebody actions."""
        id = grants.create(
            ctx,
            NewGrant(
                principal=input.principal,
                tenant=input.tenant_id,
                effect=input.effect,
                role=input.role or "",
                patterns=tuple(input.actions or ()),
                resource=None if input.resource is None else (input.resource.type, input.resource.id),
                inherit=input.inherit,
                starts_at=input.starts_at,
                expires_at=input.expires_at,
                reason=input.reason,
            ),
        )
        return shown(grants.read(ctx, id))

    @compute_method(action=READ, kind="query", resource=of_grant)
    def get(self, ctx: MethodContext, input: GrantInput) -> Grant:
        """Show a grant."""
        return shown(grants.read(ctx, input.grant_id))

    @compute_method(action=MANAGE, kind="mutation", resource=of_grant, also_while=TAKING_AWAY)
    def revoke(self, ctx: MethodContext, input: GrantInput) -> Grant:
        """Take a grant back; it acts at the next request of whoever had it."""
        return shown(grants.revoke(ctx, input.grant_id))

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def list(self, ctx: MethodContext, input: ListInput) -> Page[Grant]:
        """List a tenant's own grants by id, ended ones included."""

        def read(after: PageKey | None, limit: int) -> Sequence[Record]:
            return grants.page(
                ctx,
                input.tenant_id,
                principal=input.principal,
                role=input.role,
                state=input.state,
                after=behind(after),
                limit=limit,
            )

        return ctx.page(input, read, key=lambda record: (record.id,), show=shown)
