"""``roles.*``: the built-in roles, and those a tenant makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

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
from compute_modules.iam import role_rows, tree
from compute_modules.iam.roles import BUILT_IN, MEANING

from .inputs import MANAGE, READ, Name, Pattern, of_tenant

Patterns = Annotated[list[Pattern], Meta(min_length=1, max_length=100)]
RoleId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}/[a-z0-9][a-z0-9-]{0,62}$(?!\n)")]


class CreateInput(Input):
    """A role's name in the tenant, and the actions it conveys, but not those of `butNot`."""

    tenant_id: TenantId
    name: Name
    permits: Patterns
    but_not: Annotated[list[Pattern], Meta(max_length=100)] = []


class UpdateInput(Input):
    """What a role shall convey from now on."""

    role_id: RoleId
    permits: Patterns
    but_not: Annotated[list[Pattern], Meta(max_length=100)] = []


class RoleInput(Input):
    """A role of a tenant."""

    role_id: RoleId


class Role(Output):
    """A role; ``tenant_id`` is empty for a built-in one."""

    id: str
    tenant_id: str
    permits: list[str]
    but_not: list[str]
    meaning: str


class ListInput(PageInput, kw_only=True):
    """The roles that can be granted in a tenant."""

    tenant_id: TenantId


def _built_in(name: str) -> Role:
    rights = BUILT_IN[name]
    return Role(
        id=name,
        tenant_id="",
        permits=[*rights.permits.texts],
        but_not=[*rights.but_not.texts],
        meaning=MEANING[name],
    )


def _shown(role: role_rows.Role) -> Role:
    return Role(id=role.id, tenant_id=role.tenant_id, permits=role.permits, but_not=role.but_not, meaning="")


def _of_role(input: UpdateInput | RoleInput) -> Resource:
    return Resource("iam-role", input.role_id)


class Roles(ComputeViewSet):
    """Named sets of actions."""

    @compute_method(action=MANAGE, kind="mutation", resource=of_tenant)
    def create(self, ctx: MethodContext, input: CreateInput) -> Role:
        """Make a role that can be granted in the tenant and below."""
        return _shown(
            role_rows.create(
                ctx, tenant_id=input.tenant_id, name=input.name, permits=input.permits, but_not=input.but_not
            )
        )

    @compute_method(action=MANAGE, kind="mutation", resource=_of_role)
    def update(self, ctx: MethodContext, input: UpdateInput) -> Role:
        """Change what a role conveys, for everybody who has it and never beyond what the caller could give them."""
        return _shown(role_rows.update(ctx, input.role_id, permits=input.permits, but_not=input.but_not))

    @compute_method(action=MANAGE, kind="mutation", resource=_of_role)
    def delete(self, ctx: MethodContext, input: RoleInput) -> Role:
        """End a role that no grant conveys."""
        return _shown(role_rows.delete(ctx, input.role_id))

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def list(self, ctx: MethodContext, input: ListInput) -> Page[Role]:
        """List the roles that can be granted in a tenant: the built-in ones, then its own and those above, by id."""
        path = tree.require(ctx, input.tenant_id).path

        def read(after: PageKey | None, limit: int) -> Sequence[Role]:
            # No tenant's own role sorts before the built-in ones, which have no tenant.
            tenant, last = after or ("", "")
            first = [_built_in(name) for name in sorted(BUILT_IN) if not tenant and name > str(last)][:limit]
            own = role_rows.of_tenants(ctx, path, after=str(last) if tenant else "", limit=limit - len(first))
            return [*first, *map(_shown, own)]

        return ctx.page(input, read, key=lambda role: (role.tenant_id, role.id), show=lambda role: role)
