"""Roles that a tenant makes for itself and the tenants below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from better_compute import ComputeError, ErrorCode, MethodContext, ModuleContext

from . import giving, grants, patterns
from .apps import Options
from .facts import Facts
from .giving import Gift
from .jsonb import decoded, encoded
from .patterns import Patterns, Rights
from .projection import Reading


@dataclass(frozen=True, slots=True)
class Role:
    """A tenant's own role."""

    id: str
    tenant_id: str
    name: str
    permits: list[str]
    but_not: list[str]


def create(ctx: MethodContext, *, tenant_id: str, name: str, permits: Sequence[str], but_not: Sequence[str]) -> Role:
    """Make a role. Making it gives nobody anything yet, except where the settings map claims to it already.

    Raises
    ------
    ComputeError
        CONFLICT when the tenant has one of this name; ACCESS_DENIED when claims would convey more than the caller
        could give.
    """
    reading = grants.begin(ctx)
    _check(ctx, permits, but_not)
    id = f"{tenant_id}/{name}"
    for gift in _claimed(ctx, id, Rights(Patterns(tuple(permits)), Patterns(tuple(but_not)))):
        giving.require(ctx, reading.facts, gift, reading.at)
    made = ctx.sql.query(
        """
        INSERT INTO compute_iam_roles (id, tenant_id, name, permits, but_not) VALUES (%s, %s, %s, %s::jsonb, %s::jsonb)
        ON CONFLICT (id) DO UPDATE SET permits = EXCLUDED.permits, but_not = EXCLUDED.but_not, deleted_at = NULL
        WHERE compute_iam_roles.deleted_at IS NOT NULL
        """,
        [id, tenant_id, name, encoded(permits), encoded(but_not)],
    )
    if made.row_count != 1:
        raise ComputeError(ErrorCode.CONFLICT, f"The role {id!r} exists.", mend="Change it with roles.update.")
    _tell(ctx, "iam.role-created", tenant_id, id)
    return read(ctx, id)


def update(ctx: MethodContext, role_id: str, *, permits: Sequence[str], but_not: Sequence[str]) -> Role:
    """Change what a role conveys, for everybody who has it.

    Raises
    ------
    ComputeError
        ACCESS_DENIED when it would convey more, wherever it is granted, than the caller could give there.
    """
    reading = grants.begin(ctx)
    _check(ctx, permits, but_not)
    role = read(ctx, role_id)
    rights = Rights(Patterns(tuple(permits)), Patterns(tuple(but_not)))
    for gift in [*_conveyed(reading, role_id, rights), *_claimed(ctx, role_id, rights)]:
        giving.require(ctx, reading.facts, gift, reading.at)
    ctx.sql.query(
        "UPDATE compute_iam_roles SET permits = %s::jsonb, but_not = %s::jsonb WHERE id = %s",
        [encoded(permits), encoded(but_not), role_id],
    )
    _tell(ctx, "iam.role-changed", role.tenant_id, role_id)
    return read(ctx, role_id)


def delete(ctx: MethodContext, role_id: str) -> Role:
    """End a role that no grant conveys. Raises IN_USE while one does."""
    reading = grants.begin(ctx)
    role = read(ctx, role_id)
    users = [
        grant for grant in _granted(reading.facts, role_id) if grant.expires_at is None or grant.expires_at > reading.at
    ]
    if users:
        raise ComputeError(
            ErrorCode.IN_USE,
            f"{len(users)} grants convey the role {role_id!r}, one of them to {users[0].principal}.",
            mend="Revoke them first; grants.list with this role shows them.",
        )
    ctx.sql.query("UPDATE compute_iam_roles SET deleted_at = compute_now() WHERE id = %s", [role_id])
    _tell(ctx, "iam.role-deleted", role.tenant_id, role_id)
    return role


def read(ctx: ModuleContext, role_id: str) -> Role:
    """A tenant's own role. Raises NOT_FOUND."""
    rows = ctx.sql.query(
        "SELECT id, tenant_id, name, permits, but_not FROM compute_iam_roles WHERE id = %s AND deleted_at IS NULL",
        [role_id],
    ).rows
    if not rows:
        raise ComputeError(ErrorCode.NOT_FOUND, f"There is no role {role_id!r}.", mend="roles.list shows them.")
    return _role(rows[0])


def of_tenants(ctx: ModuleContext, tenant_ids: Sequence[str], *, after: str, limit: int) -> list[Role]:
    """Up to ``limit`` own roles of these tenants whose ids are greater than ``after``, by id."""
    rows = ctx.sql.query(
        "SELECT id, tenant_id, name, permits, but_not FROM compute_iam_roles"
        " WHERE tenant_id = ANY(%s) AND deleted_at IS NULL AND id > %s ORDER BY id LIMIT %s",
        [list(tenant_ids), after, limit],
    ).rows
    return [_role(row) for row in rows]


def _conveyed(reading: Reading, role_id: str, rights: Rights) -> list[Gift]:
    return [
        Gift(rights, grant.tenant, grant.inherit, grant.resource, grant.expires_at)
        for grant in _granted(reading.facts, role_id)
        if grant.effect == "permit"
    ]


def _claimed(ctx: ModuleContext, role_id: str, rights: Rights) -> list[Gift]:
    """What the role conveys to people of an identity provider, whoever they are, for as long as the settings say so."""
    options: Options = ctx.options
    return [
        Gift(rights, claim.tenant, claim.inherit)
        for provider in options.providers
        for claim in provider.claim_grants
        if claim.role == role_id
    ]


def _granted(facts: Facts, role_id: str) -> list[Any]:
    return [grant for holdings in facts.holdings.values() for grant in holdings.by_id.values() if grant.role == role_id]


def _check(ctx: ModuleContext, permits: Sequence[str], but_not: Sequence[str]) -> None:
    patterns.require_known(ctx, [*permits, *but_not])


def _tell(ctx: ModuleContext, type: str, tenant_id: str, role_id: str) -> None:
    ctx.events.publish(type=type, tenant_id=tenant_id, subject=f"role/{role_id}", data={"role": role_id})


def _role(row: dict[str, Any]) -> Role:
    return Role(row["id"], row["tenant_id"], row["name"], decoded(row["permits"]), decoded(row["but_not"]))
