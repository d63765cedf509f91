"""``serviceAccounts.*``: principals that are programs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from better_compute import (
    ComputeError,
    ComputeViewSet,
    ErrorCode,
    Input,
    Meta,
    MethodContext,
    Output,
    Resource,
    TenantId,
    compute_method,
)
from compute_modules.iam import grants, principals, tokens

from .inputs import MANAGE, READ, TAKING_AWAY, Label, Limit, Name, of_tenant

ServiceId = Annotated[str, Meta(pattern=r"^service/[a-z0-9][a-z0-9-]{0,62}$(?!\n)")]


class CreateInput(Input):
    """A name, unique in the installation, and what it is for."""

    tenant_id: TenantId
    name: Name
    label: Label


class ServiceInput(Input):
    """A service account."""

    principal: ServiceId


class ListInput(Input):
    """A tenant's service accounts; a page begins after this one."""

    tenant_id: TenantId
    after: ServiceId | None = None
    limit: Limit = 50


class ServiceAccount(Output):
    """A program's principal; it has no rights until they are granted."""

    principal: str
    tenant_id: str
    label: str
    disabled: bool
    created_at: datetime


class ServicePage(Output):
    """Service accounts by id; ``next`` is the ``after`` of the next page, null on the last one."""

    service_accounts: list[ServiceAccount]
    next: str | None


def _of_service(input: ServiceInput) -> Resource:
    return Resource("iam-service", input.principal)


def _shown(row: dict[str, Any]) -> ServiceAccount:
    return ServiceAccount(
        principal=row["id"],
        tenant_id=row["tenant_id"],
        label=row["name"],
        disabled=row["disabled_at"] is not None,
        created_at=row["created_at"],
    )


def _read(ctx: MethodContext, principal: str) -> ServiceAccount:
    row = principals.read(ctx, principal)
    if row is None:
        raise ComputeError(ErrorCode.NOT_FOUND, f"There is no {principal!r}.", mend="serviceAccounts.list shows them.")
    return _shown(row)


class ServiceAccounts(ComputeViewSet):
    """Programs that call."""

    @compute_method(action=MANAGE, kind="mutation", resource=of_tenant)
    def create(self, ctx: MethodContext, input: CreateInput) -> ServiceAccount:
        """Make a service account; grants give it rights and tokens let it in."""
        grants.begin(ctx)
        principal = principals.create_service(
            ctx, tenant_id=input.tenant_id, name=input.name, label=input.label, by=ctx.principal.id
        )
        _tell(ctx, "iam.service-account-created", input.tenant_id, principal)
        return _read(ctx, principal)

    @compute_method(action=MANAGE, kind="mutation", resource=_of_service, also_while=TAKING_AWAY)
    def disable(self, ctx: MethodContext, input: ServiceInput) -> ServiceAccount:
        """Refuse everything to a service account from its next request on, its tokens included."""
        reading = grants.begin(ctx)
        if principals.set_disabled(ctx, input.principal, True):
            grants.keep_an_owner(ctx, reading, input.principal)
            _tell(ctx, "iam.service-account-disabled", ctx.tenant_id, input.principal)
        return _read(ctx, input.principal)

    @compute_method(action=MANAGE, kind="mutation", resource=_of_service)
    def enable(self, ctx: MethodContext, input: ServiceInput) -> ServiceAccount:
        """Let a disabled service account in again; the caller must hold what it gets back."""
        reading = grants.begin(ctx)
        tokens.holds_all_of(ctx, reading, input.principal)
        if principals.set_disabled(ctx, input.principal, False):
            _tell(ctx, "iam.service-account-enabled", ctx.tenant_id, input.principal)
        return _read(ctx, input.principal)

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def list(self, ctx: MethodContext, input: ListInput) -> ServicePage:
        """List a tenant's service accounts."""
        rows = principals.services(ctx, input.tenant_id, after=input.after or "", limit=input.limit + 1)
        shown = [_shown(row) for row in rows[: input.limit]]
        return ServicePage(service_accounts=shown, next=shown[-1].principal if len(rows) > input.limit else None)


def _tell(ctx: MethodContext, type: str, tenant_id: str | None, principal: str) -> None:
    assert tenant_id is not None  # noqa: S101 - the resource is a tenant's
    ctx.events.publish(type=type, tenant_id=tenant_id, subject=f"principal/{principal}", data={"principal": principal})
