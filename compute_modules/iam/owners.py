"""Owners: a tenant, and every one below it, keeps somebody who may say who may do what there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from better_compute import ComputeError, ErrorCode, MethodContext

from .facts import Facts, Grant
from .projection import Reading, projection
from .roles import OWNER


def keep_one(ctx: MethodContext, before: Reading, principal: str) -> None:
    """Refuse a change to what ``principal`` has after which a tenant that it owned, or one below, has no owner.

    An owner's grant has no end and no forbid. Call it after the change, in its transaction.
    """
    after = projection.read(ctx)
    # Whoever owns one of them by inheritance mostly owns the others, so it is looked at first.
    found: str | None = None
    for tenant_id in _owned(before.facts, principal, before.at):
        if found is not None and _is_owner(after.facts, found, tenant_id, after.at):
            continue
        found = next(_owning(after.facts, tenant_id, after.at), None)
        if found is None:
            raise ComputeError(
                ErrorCode.IN_USE,
                f"This would leave the tenant {tenant_id!r} without an owner.",
                mend=f"Give somebody else the role {OWNER!r} there first, without an end.",
                reason="LAST_OWNER",
            )


def of(facts: Facts, tenant_id: str, at: datetime) -> set[str]:
    """Who owns a tenant for good: an unending grant of the owner's role there or inherited, not taken by a forbid."""
    return set(_owning(facts, tenant_id, at))


def _owning(facts: Facts, tenant_id: str, at: datetime) -> Iterator[str]:
    for principal in {who for place in facts.path(tenant_id) for who in facts.holders.get(place, ())}:
        if _is_owner(facts, principal, tenant_id, at):
            yield principal


def _owned(facts: Facts, principal: str, at: datetime) -> Iterator[str]:
    """The tenants that a principal owns, the topmost first."""
    holdings = facts.holdings.get(principal)
    own = [grant for grant in holdings.by_id.values() if _owns(grant, grant.tenant)] if holdings else []
    here, below = {grant.tenant for grant in own}, {grant.tenant for grant in own if grant.inherit}
    for tenant in sorted(facts.tenants.values(), key=lambda tenant: len(tenant.path)) if own else ():
        if (tenant.id in here or not below.isdisjoint(tenant.path)) and _is_owner(facts, principal, tenant.id, at):
            yield tenant.id


def _is_owner(facts: Facts, principal: str, tenant_id: str, at: datetime) -> bool:
    who, holdings = facts.principals.get(principal), facts.holdings.get(principal)
    if holdings is None or (who is not None and who.disabled):
        return False
    path = facts.path(tenant_id)
    reaching = [grant for grant in holdings.by_id.values() if grant.tenant in path and grant.active(at)]
    return any(_owns(grant, tenant_id) for grant in reaching) and not any(_unseats(facts, grant) for grant in reaching)


def _unseats(facts: Facts, grant: Grant) -> bool:
    """An owner who may not say who may do what is none."""
    return grant.effect == "forbid" and grant.resource is None and facts.rights(grant).match("compute:iam:manage")


def _owns(grant: Grant, tenant_id: str) -> bool:
    return (
        grant.effect == "permit"
        and grant.resource is None
        and grant.expires_at is None
        and (grant.role == OWNER or "*" in grant.patterns.texts)
        and (grant.inherit or grant.tenant == tenant_id)
    )
