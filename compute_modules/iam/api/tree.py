"""``tenantTree.*``: tenants and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from better_compute import (
    ComputeError,
    ComputeViewSet,
    ErrorCode,
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
from compute_modules.iam import giving, grants, patterns, principals, tree
from compute_modules.iam.giving import Gift
from compute_modules.iam.models import TenantKind
from compute_modules.iam.new_grants import NewGrant
from compute_modules.iam.patterns import EVERYTHING, Patterns, Rights
from compute_modules.iam.projection import projection
from compute_modules.iam.roles import OWNER

from .inputs import READ, Label, Pattern, PrincipalId, TenantInput, behind, of_tenant

TENANTS: Final = "compute:iam:manage-tenants"
Ceiling = Annotated[list[Pattern], Meta(max_length=100)]


class CreateInput(Input):
    """A tenant below another one; its owner, if named, is granted everything there by the caller, who must hold it."""

    parent_id: TenantId
    tenant_id: TenantId
    kind: Literal["organisation", "project"]
    name: Label
    owner: PrincipalId | None = None
    ceiling: Ceiling | None = None


class CeilingInput(Input):
    """What may be done at all in a tenant and below it; null sets no bound. Said by the tenant above."""

    parent_id: TenantId
    tenant_id: TenantId
    ceiling: Ceiling | None


class ListInput(PageInput, kw_only=True):
    """The tenants right below one."""

    tenant_id: TenantId


class Tenant(Output):
    """A tenant's place. ``path`` begins at the root."""

    id: str
    parent_id: str | None
    kind: str
    name: str
    path: list[str]
    ceiling: list[str] | None


def _shown(node: tree.Node) -> Tenant:
    return Tenant(
        id=node.id,
        parent_id=node.parent_id,
        kind=node.kind,
        name=node.name,
        path=list(node.path),
        ceiling=None if node.ceiling is None else list(node.ceiling),
    )


def _of_parent(input: CreateInput | CeilingInput) -> Resource:
    return Resource("tenant", input.parent_id)


class TenantTree(ComputeViewSet):
    """The tree of tenants."""

    @compute_method(action=TENANTS, kind="mutation", resource=_of_parent)
    def create(self, ctx: MethodContext, input: CreateInput) -> Tenant:
        """Make a tenant below another one."""
        grants.begin(ctx)
        tree.ensure_root(ctx)
        parent = tree.require(ctx, input.parent_id)
        if input.ceiling is not None:
            patterns.require_known(ctx, input.ceiling)
        node = tree.create(
            ctx,
            id=input.tenant_id,
            parent=parent,
            kind=TenantKind(input.kind),
            name=input.name,
            ceiling=input.ceiling,
        )
        if input.owner is not None:
            self._own(ctx, node.id, input.owner)
        ctx.events.publish(
            type="iam.tenant-created",
            tenant_id=parent.id,
            subject=f"tenant/{node.id}",
            data={"parent": parent.id, "kind": node.kind, "owner": input.owner},
        )
        return _shown(node)

    @compute_method(action=TENANTS, kind="mutation", resource=_of_parent)
    def set_ceiling(self, ctx: MethodContext, input: CeilingInput) -> Tenant:
        """Bound what may be done in a tenant and below; said by the tenant above it, within its own ceiling.

        Raising it takes holding what it lets through.
        """
        reading = grants.begin(ctx)
        node = tree.require(ctx, input.tenant_id)
        if node.parent_id != input.parent_id:
            raise ComputeError(
                ErrorCode.NOT_FOUND,
                f"There is no tenant {input.tenant_id!r} right below {input.parent_id!r}.",
                mend="tenantTree.list shows them.",
            )
        if input.ceiling is not None:
            patterns.require_known(ctx, input.ceiling)
        released = tree.released(ctx, node, input.ceiling)
        if released:
            # Like lifting a forbid, it gives what was held back to whoever has been granted it there.
            giving.require(ctx, reading.facts, Gift(Rights(Patterns(released)), node.id, inherit=True), reading.at)
        changed = tree.set_ceiling(ctx, node, input.ceiling)
        ctx.events.publish(
            type="iam.ceiling-set",
            # Of the tenant that the call acts in: who bounds a tenant need not be allowed anything in it.
            tenant_id=input.parent_id,
            subject=f"tenant/{node.id}",
            data={"ceiling": input.ceiling},
        )
        return _shown(changed)

    @compute_method(action=READ, kind="query", resource=of_tenant, also_while="any")
    def get(self, ctx: MethodContext, input: TenantInput) -> Tenant:
        """Show where a tenant stands, or stood: the list above it still shows one that is gone."""
        return _shown(tree.require(ctx, input.tenant_id))

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def list(self, ctx: MethodContext, input: ListInput) -> Page[Tenant]:
        """List the tenants right below one by id, except those that `get` would refuse to this caller."""

        def read(after: PageKey | None, limit: int) -> Sequence[tree.Node]:
            return tree.children(ctx, input.tenant_id, after=behind(after) or "", limit=limit)

        def show(node: tree.Node) -> Tenant | None:
            return _shown(node) if ctx.permits(READ, Resource("tenant", node.id), node.id) else None

        return ctx.page(input, read, key=lambda node: (node.id,), show=show)

    @staticmethod
    def _own(ctx: MethodContext, tenant_id: str, owner: str) -> None:
        reading = projection.read(ctx)
        principals.ensure_seen(ctx, owner, reading.facts.path(tenant_id))
        giving.require(ctx, reading.facts, Gift(EVERYTHING, tenant_id, inherit=True), reading.at)
        wanted = NewGrant(principal=owner, tenant=tenant_id, role=OWNER, inherit=True, reason="created with the tenant")
        grants.insert(ctx, wanted, reading)
