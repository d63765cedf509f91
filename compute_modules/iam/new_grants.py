"""A grant that is asked for: what it would convey, and whether that can be granted at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from better_compute import ComputeError, ErrorCode, MethodContext

from . import patterns
from .facts import Effect, Facts
from .patterns import Patterns, Rights
from .projection import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGrant:
    """A grant to be made. ``role`` or ``patterns``, one of them."""

    principal: str
    tenant: str
    effect: Effect = "permit"
    role: str = ""
    patterns: Sequence[str] = ()
    resource: tuple[str, str] | None = None
    inherit: bool = False
    starts_at: datetime | None = None
    expires_at: datetime | None = None
    reason: str = ""
    break_glass: bool = False


def judge(ctx: MethodContext, wanted: NewGrant, reading: Reading) -> Rights:
    """What the grant conveys.

    Raises
    ------
    ComputeError
        INVALID_INPUT for what makes no sense, NOT_FOUND for a tenant, role or resource that is not there.
    """
    rights = _rights(ctx, reading.facts, wanted)
    _check_times(wanted, reading.at)
    _check_resource(ctx, wanted)
    return rights


def _rights(ctx: MethodContext, facts: Facts, wanted: NewGrant) -> Rights:
    if bool(wanted.role) == bool(wanted.patterns):
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            "A grant conveys either a role or patterns of actions.",
            mend="Give one of `role` and `actions`.",
        )
    if wanted.tenant not in facts.tenants:
        raise ComputeError(
            ErrorCode.NOT_FOUND, f"There is no tenant {wanted.tenant!r}.", mend="tenantTree.create makes one."
        )
    if wanted.effect == "forbid" and not wanted.patterns:
        # A role can be changed, and changing one must not lift a forbid.
        raise ComputeError(
            ErrorCode.INVALID_INPUT, "A forbid names actions, not a role.", mend="Give `actions` instead of `role`."
        )
    if wanted.patterns:
        patterns.require_known(ctx, wanted.patterns)
        return Rights(Patterns(tuple(wanted.patterns)))
    rights = facts.roles.get(wanted.role)
    owner, _, name = wanted.role.rpartition("/")
    if rights is None or (name and owner and owner not in facts.path(wanted.tenant)):
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"There is no role {wanted.role!r} that can be granted in {wanted.tenant!r}.",
            mend="roles.list shows the built-in roles and those of the tenant and the ones above it.",
        )
    return rights


def _check_times(wanted: NewGrant, now: datetime) -> None:
    for what, time in (("beginning", wanted.starts_at), ("end", wanted.expires_at)):
        if time is not None and time.tzinfo is None:
            raise ComputeError(
                ErrorCode.INVALID_INPUT, f"The {what} {time} has no time zone.", mend="Write 2030-01-31T12:00:00Z."
            )
    if wanted.expires_at is not None and wanted.expires_at <= max(now, wanted.starts_at or now):
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"The grant would end at {wanted.expires_at.isoformat()}, before it begins.",
            mend="Give an end in the future, after the beginning.",
        )


def _check_resource(ctx: MethodContext, wanted: NewGrant) -> None:
    if wanted.resource is None:
        return
    type, id = wanted.resource
    kind = ctx.hosted.resource_types.get(type)
    if kind is None:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"No hosted module has resources of type {type!r}.",
            mend=f"Use one of {', '.join(sorted(ctx.hosted.resource_types)) or 'none'}.",
        )
    if kind.resolve(ctx.sql, id) != wanted.tenant:
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"There is no {type} {id!r} in {wanted.tenant!r}.",
            mend="Check the id and the tenant.",
        )
    if wanted.inherit:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            "A grant on one resource cannot hold in the tenants below.",
            mend="Leave out `inherit` or the resource.",
        )
