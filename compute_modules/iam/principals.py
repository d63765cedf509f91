"""Principals: people of the host's user table, service accounts, and people of an identity provider."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from django.contrib.auth import get_user_model

from better_compute import ComputeError, ErrorCode, MethodContext, ModuleContext, Resource

from .apps import Options

#: ``user/7``, ``service/ci-runner``, ``external/<provider>/<subject>``.
PRINCIPAL_ID_PATTERN: Final = (
    r"^(user/[A-Za-z0-9._@-]{1,128}|service/[a-z0-9][a-z0-9-]{0,62}|external/[a-z][a-z0-9-]{0,30}/[!-~]{1,200})$(?!\n)"
)
#: Those that are no programs.
PERSON_ID_PATTERN: Final = PRINCIPAL_ID_PATTERN.replace("service/[a-z0-9][a-z0-9-]{0,62}|", "")
PRINCIPAL_ID: Final = re.compile(PRINCIPAL_ID_PATTERN, re.ASCII)


def ensure_seen(ctx: MethodContext, principal_id: str, path: Sequence[str]) -> None:
    """As :func:`ensure`, for a principal that a caller names for a tenant whose path this is.

    Service accounts of that tenant and of those above it are there to be named. Any other tenant's is there only for
    who may read that tenant; for everybody else it reads as if there were none.
    """
    options: Options = ctx.options
    kind, _, rest = principal_id.partition("/")
    if kind == "external" and rest.partition("/")[0] not in {provider.name for provider in options.providers}:
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"There is no identity provider {rest.partition('/')[0]!r}, so {principal_id!r} is nobody.",
            mend="Name a provider of COMPUTE['iam']['PROVIDERS'].",
        )
    ensure(ctx, principal_id, by=ctx.principal.id)
    row = read(ctx, principal_id)
    home = None if row is None else row["tenant_id"]
    if home is None or home in path:
        return
    if not ctx.permits("compute:iam:read", Resource("tenant", home), home):
        raise unknown(principal_id)


def ensure(ctx: ModuleContext, principal_id: str, *, by: str) -> None:
    """Make a row for a user or an external person that exists; a service account must have one.

    Raises
    ------
    ComputeError
        NOT_FOUND for a principal that does not exist; INVALID_INPUT for an id of another form.
    """
    if PRINCIPAL_ID.fullmatch(principal_id) is None:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"{principal_id[:80]!r} is no principal.",
            mend="Write user/<pk>, service/<name> or external/<provider>/<subject>.",
        )
    kind, _, rest = principal_id.partition("/")
    if kind == "service":
        if read(ctx, principal_id) is None:
            raise unknown(principal_id)
        return
    if kind == "user" and user_of(principal_id) is None:
        raise unknown(principal_id)
    ctx.sql.query(
        "INSERT INTO compute_iam_principals (id, kind, name, created_by) SELECT %s, %s, %s, %s"
        " WHERE NOT EXISTS (SELECT FROM compute_iam_principals WHERE id = %s) ON CONFLICT (id) DO NOTHING",
        [principal_id, kind, rest[-128:], by, principal_id],
    )


def user_of(principal_id: str) -> Any:
    """The Django user behind ``user/<pk>``; None for anything else and for a user that is gone."""
    kind, _, key = principal_id.partition("/")
    if kind != "user":
        return None
    model = get_user_model()
    try:
        pk = model._meta.pk.to_python(key)
    except Exception:
        return None
    return model._default_manager.filter(pk=pk).first()


def may_call(principal_id: str) -> bool:
    """Whether the host's user table lets a principal call; it says nothing of one that is no user."""
    user = user_of(principal_id)
    return bool(user.is_active) if user is not None else not principal_id.startswith("user/")


def read(ctx: ModuleContext, principal_id: str) -> dict[str, Any] | None:
    """The principal's row."""
    rows = ctx.sql.query(
        "SELECT id, kind, tenant_id, name, disabled_at, created_at FROM compute_iam_principals WHERE id = %s",
        [principal_id],
    ).rows
    return rows[0] if rows else None


def create_service(ctx: ModuleContext, *, tenant_id: str, name: str, label: str, by: str) -> str:
    """Make a service account of a tenant and return its id. Raises CONFLICT when the name is taken."""
    principal_id = f"service/{name}"
    made = ctx.sql.query(
        "INSERT INTO compute_iam_principals (id, kind, tenant_id, name, created_by) VALUES (%s, 'service', %s, %s, %s)"
        " ON CONFLICT (id) DO NOTHING",
        [principal_id, tenant_id, label, by],
    )
    if made.row_count != 1:
        raise ComputeError(
            ErrorCode.CONFLICT,
            f"The name {name!r} is taken.",
            mend="Names of service accounts are unique in the installation; choose another one.",
        )
    return principal_id


def set_disabled(ctx: ModuleContext, principal_id: str, disabled: bool) -> bool:
    """Disable or enable a principal; False when it is so already."""
    return bool(
        ctx.sql.query(
            "UPDATE compute_iam_principals SET disabled_at = CASE WHEN %s THEN compute_now() END"
            " WHERE id = %s AND (disabled_at IS NOT NULL) <> %s",
            [disabled, principal_id, disabled],
        ).row_count
    )


def unknown(principal_id: str) -> ComputeError:
    """The refusal of a principal that does not exist."""
    return ComputeError(
        ErrorCode.NOT_FOUND,
        f"There is no principal {principal_id!r}.",
        mend="A user must be in the user table, a service account is made by serviceAccounts.create.",
    )


def services(ctx: ModuleContext, tenant_id: str, *, after: str, limit: int) -> list[dict[str, Any]]:
    """A tenant's service accounts, by id."""
    return ctx.sql.query(
        "SELECT id, kind, tenant_id, name, disabled_at, created_at FROM compute_iam_principals"
        " WHERE tenant_id = %s AND kind = 'service' AND id > %s ORDER BY id LIMIT %s",
        [tenant_id, after, limit],
    ).rows


def people(
    ctx: ModuleContext, *, kind: str | None, disabled: bool | None, after: str, limit: int
) -> list[dict[str, Any]]:
    """Users and people of identity providers that were ever named, by id."""
    return ctx.sql.query(
        "SELECT id, kind, tenant_id, name, disabled_at, created_at FROM compute_iam_principals"
        " WHERE kind <> 'service' AND id > %s AND (%s::text IS NULL OR kind = %s)"
        " AND (%s::boolean IS NULL OR (disabled_at IS NOT NULL) = %s) ORDER BY id LIMIT %s",
        [after, kind, kind, disabled, disabled, limit],
    ).rows
