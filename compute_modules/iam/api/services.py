"""``serviceAccounts.*``: principals that are programs."""

from __future__ import annotations

from collections.abc import Sequence
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
    Page,
    PageInput,
    PageKey,
    Resource,
    TenantId,
    compute_method,
)
from compute_modules.iam import grants, owners, principals, tokens

from .inputs import MANAGE, READ, TAKING_AWAY, Label, Name, behind, of_tenant

ServiceId = Annotated[str, Meta(pattern=r"^service/[a-z0-9][a-z0-9-]{0,62}$(?!\n)")]


class CreateInput(Input):
    """A name, unique in the installation, and what it is for."""

    tenant_id: TenantId
    name: Name
    label: Label


class ServiceInput(Input):
    """A service account."""

    principal: ServiceId


class ListInput(PageInput, kw_only=True):
    """A tenant's service accounts."""

    tenant_id: TenantId


class ServiceAccount(Output):
    """A program's principal; it has no rights until they are granted."""

    principal: str
    tenant_id: str
    label: str
    disabled: bool
    created_at: datetime


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
            owners.keep_one(ctx, reading, input.principal)
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
    def list(self, ctx: MethodContext, input: ListInput) -> Page[ServiceAccount]:
        """List a tenant's service accounts by id."""

        def read(after: PageKey | None, limit: int) -> Sequence[dict[str, Any]]:
            return principals.services(ctx, input.tenant_id, after=behind(after) or "", limit=limit)

        return ctx.page(input, read, key=lambda row: (row["id"],), show=_shown)


def _tell(ctx: MethodContext, type: str, tenant_id: str | None, principal: str) -> None:
    assert tenant_id is not None  # noqa: S101 - the resource is a tenant's
    ctx.events.publish(type=type, tenant_id=tenant_id, subject=f"principal/{principal}", data={"principal": principal})
