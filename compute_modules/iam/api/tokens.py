"""``tokens.*``: bearer tokens of people and service accounts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

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
    Secret,
    TenantId,
    compute_method,
)
from compute_modules.iam import tokens
from compute_modules.iam.tokens import NewToken, Record

from .inputs import MANAGE, TAKING_AWAY, Label, Pattern, PrincipalId, Uuid, behind, of_tenant

TOKENS: Final = "compute:iam:manage-tokens"


class CreateInput(Input):
    """For whom (the caller, unless a service account is named), where it acts, and what it is narrowed to.

    Without `actsIn` it acts in `tenantId` and below; `everywhere` lets it act wherever its principal may.
    """

    tenant_id: TenantId
    label: Label
    principal: PrincipalId | None = None
    acts_in: TenantId | None = None
    everywhere: bool = False
    actions: Annotated[list[Pattern], Meta(min_length=1, max_length=100)] | None = None
    expires_at: datetime | None = None


class TokenInput(Input):
    """A token."""

    token_id: Uuid


class RotateInput(Input):
    """A token, and for how many seconds the old one stays good."""

    token_id: Uuid
    grace_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0


class ListInput(PageInput, kw_only=True):
    """The caller's tokens of a tenant, or everybody's for who manages them."""

    tenant_id: TenantId


class Token(Output):
    """A token without its secret. ``makers`` made it for another principal; it is worth no more than each of them."""

    id: str
    hint: str
    principal: str
    tenant_id: str
    acts_in: str | None
    actions: list[str] | None
    label: str
    state: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    replaced_by: str | None
    makers: list[str]


class NewSecret(Output):
    """A token and its secret, which is shown this once."""

    token: Token
    secret: Secret


def shown(record: Record) -> Token:
    """A token as it is answered."""
    row = record.row
    return Token(
        id=str(row["id"]),
        hint=row["hint"],
        principal=row["principal_id"],
        tenant_id=row["home_tenant_id"],
        acts_in=row["tenant_id"],
        actions=record.actions,
        label=row["label"],
        state=record.state.value,
        created_at=row["created_at"],
        created_by=row["created_by"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
        replaced_by=None if row["replaced_by"] is None else str(row["replaced_by"]),
        makers=record.makers,
    )


def _of_token(input: TokenInput | RotateInput) -> Resource:
    return Resource("iam-token", input.token_id)


def _caller(ctx: MethodContext) -> str:
    return ctx.principal.acts_for or ctx.principal.id


class Tokens(ComputeViewSet):
    """Bearer tokens."""

    @compute_method(action=TOKENS, kind="mutation", resource=of_tenant)
    def create(self, ctx: MethodContext, input: CreateInput) -> NewSecret:
        """Make a token and show its secret, once."""
        id, secret = tokens.create(
            ctx,
            NewToken(
                principal=input.principal or _caller(ctx),
                home_tenant=input.tenant_id,
                label=input.label,
                tenant=None if input.everywhere else input.acts_in or input.tenant_id,
                actions=input.actions,
                expires_at=input.expires_at,
            ),
        )
        return NewSecret(token=shown(tokens.read(ctx, id)), secret=secret)

    @compute_method(action=TOKENS, kind="mutation", resource=_of_token)
    def rotate(self, ctx: MethodContext, input: RotateInput) -> NewSecret:
        """Put a new secret in a token's place; the old one stays good for the grace that is given."""
        id, secret = tokens.rotate(ctx, input.token_id, grace=timedelta(seconds=input.grace_seconds))
        return NewSecret(token=shown(tokens.read(ctx, id)), secret=secret)

    @compute_method(action=TOKENS, kind="mutation", resource=_of_token, also_while=TAKING_AWAY)
    def revoke(self, ctx: MethodContext, input: TokenInput) -> Token:
        """End a token; it is refused from the next request on."""
        record = tokens.read(ctx, input.token_id)
        if record.row["principal_id"] != _caller(ctx) and not _manages(ctx, record.row["home_tenant_id"]):
            raise ComputeError(
                ErrorCode.NOT_FOUND,
                f"There is no token {input.token_id} that you can see.",
                mend="tokens.list shows yours.",
            )
        return shown(tokens.revoke(ctx, input.token_id))

    @compute_method(action=TOKENS, kind="query", resource=of_tenant)
    def list(self, ctx: MethodContext, input: ListInput) -> Page[Token]:
        """List tokens by id, ended ones included; never a secret."""
        owner = None if _manages(ctx, input.tenant_id) else _caller(ctx)

        def read(after: PageKey | None, limit: int) -> Sequence[Record]:
            return tokens.page(ctx, input.tenant_id, owner=owner, after=behind(after), limit=limit)

        return ctx.page(input, read, key=lambda record: (str(record.row["id"]),), show=shown)


def _manages(ctx: MethodContext, tenant_id: str) -> bool:
    return ctx.permits(MANAGE, Resource("tenant", tenant_id), tenant_id)
