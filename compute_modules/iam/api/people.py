"""``principals.*``: people, who belong to the installation; programs have ``serviceAccounts.*``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

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
    compute_method,
)
from compute_modules.iam import grants, owners, principals, tokens
from compute_modules.iam.apps import Options
from compute_modules.iam.principals import PERSON_ID_PATTERN

from .inputs import MANAGE, READ, Reason, behind

PersonId = Annotated[str, Meta(pattern=PERSON_ID_PATTERN)]
_RESOURCE: Final = Resource("system", "principals")


class PersonInput(Input):
    """A user of the host (`user/7`) or somebody of an identity provider (`external/corp/alice`)."""

    principal: PersonId


class DisableInput(Input):
    """Whom, and why; the reason is told with the event."""

    principal: PersonId
    reason: Reason


class ListInput(PageInput):
    """Which people."""

    kind: Literal["user", "external"] | None = None
    disabled: bool | None = None


class Person(Output):
    """Somebody whom rights were ever granted to, or who was disabled."""

    principal: str
    kind: str
    disabled: bool
    disabled_at: datetime | None
    created_at: datetime


def _shown(row: dict[str, Any]) -> Person:
    return Person(
        principal=row["id"],
        kind=row["kind"],
        disabled=row["disabled_at"] is not None,
        disabled_at=row["disabled_at"],
        created_at=row["created_at"],
    )


def _read(ctx: MethodContext, principal: str) -> Person:
    row = principals.read(ctx, principal)
    if row is None:
        raise principals.unknown(principal)
    return _shown(row)


class Principals(ComputeViewSet):
    """People, wherever they come from."""

    @compute_method(action=MANAGE, kind="mutation", resource=lambda _: _RESOURCE)
    def disable(self, ctx: MethodContext, input: DisableInput) -> Person:
        """Refuse everything to a person from the next request on: sessions, tokens, and what a provider vouches for.

        Somebody of an identity provider may be disabled before coming for the first time.
        """
        reading = grants.begin(ctx)
        principals.ensure(ctx, input.principal, by=ctx.principal.id)
        if principals.set_disabled(ctx, input.principal, True):
            owners.keep_one(ctx, reading, input.principal)
            _tell(ctx, "iam.principal-disabled", input.principal, reason=input.reason)
        return _read(ctx, input.principal)

    @compute_method(action=MANAGE, kind="mutation", resource=lambda _: _RESOURCE)
    def enable(self, ctx: MethodContext, input: PersonInput) -> Person:
        """Let a disabled person in again; the caller must hold what that person gets back."""
        reading = grants.begin(ctx)
        found = _read(ctx, input.principal)
        if found.disabled:
            tokens.holds_all_of(ctx, reading, input.principal)
            principals.set_disabled(ctx, input.principal, False)
            _tell(ctx, "iam.principal-enabled", input.principal)
        return _read(ctx, input.principal)

    @compute_method(action=READ, kind="query", resource=lambda _: _RESOURCE)
    def get(self, ctx: MethodContext, input: PersonInput) -> Person:
        """Show a person."""
        return _read(ctx, input.principal)

    @compute_method(action=READ, kind="query", resource=lambda _: _RESOURCE)
    def list(self, ctx: MethodContext, input: ListInput) -> Page[Person]:
        """List people that rights were ever granted to by id, disabled ones included."""

        def read(after: PageKey | None, limit: int) -> Sequence[dict[str, Any]]:
            return principals.people(
                ctx, kind=input.kind, disabled=input.disabled, after=behind(after) or "", limit=limit
            )

        return ctx.page(input, read, key=lambda row: (row["id"],), show=_shown)


def _tell(ctx: MethodContext, type: str, principal: str, **more: Any) -> None:
    options: Options = ctx.options
    ctx.events.publish(
        type=type,
        tenant_id=options.root_tenant_id,
        subject=f"principal/{principal}",
        data={"principal": principal, **more},
    )
