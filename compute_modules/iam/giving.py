"""Who may give what: a grant may not exceed its giver's, in actions, place, resource or time.

Patterns are compared as patterns, not by the actions that exist today: who holds the two actions of an area does
not hold ``compute:<area>:*``, which will match a third one tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from better_compute import ComputeError, ErrorCode, MethodContext, Principal

from .evaluation import Narrowing
from .facts import Facts, Grant, ResourceKey, Tenant
from .patterns import Rights, covers, meet

#: What it takes to have everything for a while.
BREAK_GLASS: Final = "compute:iam:break-glass"


@dataclass(frozen=True, slots=True)
class Gift:
    """What is to be conveyed, and where."""

    rights: Rights
    tenant: str
    inherit: bool = False
    resource: ResourceKey | None = None
    #: None is for ever.
    expires_at: datetime | None = None


def is_trusted(principal: Principal) -> bool:
    """Code of this process that acts for nobody in particular."""
    return principal.kind == "internal" and principal.user is None and not principal.acts_for


def require(ctx: MethodContext, facts: Facts, gift: Gift, at: datetime) -> None:
    """Refuse what the caller does not hold.

    Raises
    ------
    ComputeError
        ACCESS_DENIED with reason EXCEEDS_GIVER naming the first pattern that the caller does not hold so far.
    """
    if is_trusted(ctx.principal):
        return
    giver = ctx.principal.acts_for or ctx.principal.id
    narrowed = ctx.principal.narrowed_to
    if narrowed is None and ctx.principal.tenant_id is not None:
        narrowed = Narrowing(tenant_id=ctx.principal.tenant_id)
    missing = exceeding(facts, giver, gift, at, narrowed)
    if missing is not None:
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            f"{giver} does not hold {missing!r} in {gift.tenant!r}{_extent(gift)}, so it cannot give it.",
            mend="Give what you hold yourself, there and for as long; or ask somebody who holds it.",
            reason="EXCEEDS_GIVER",
        )


def exceeding(facts: Facts, giver: str, gift: Gift, at: datetime, narrowed: Narrowing | None = None) -> str | None:
    """The first pattern of the gift that ``giver`` does not hold as wide and as long; None when it holds all."""
    tenant = facts.tenants.get(gift.tenant)
    who = facts.principals.get(giver)
    if tenant is None or (who is not None and who.disabled):
        return gift.rights.permits.texts[0]
    if narrowed is not None and narrowed.tenant_id is not None and narrowed.tenant_id not in tenant.path:
        return gift.rights.permits.texts[0]
    own = facts.holdings.get(giver)
    every = [*(own.by_id.values() if own else ()), *(narrowed.carried if narrowed else ())]
    held = [grant for grant in _permits(every, tenant, gift) if grant.active(at)]
    scope = None if narrowed is None else narrowed.actions
    forbids = list(_forbids(facts, every, tenant, gift))
    for pattern in _conveyed(gift):
        if not gift.rights.meet(pattern) and pattern != "*":
            continue
        if scope is not None and not any(covers(wide, pattern) for wide in scope.texts):
            return pattern
        if not any(_holds(facts.rights(grant), pattern, gift.rights) for grant in held):
            return pattern
        if any(_takes(facts.rights(grant), pattern, gift.rights) for grant in forbids):
            return pattern
    return None


def _conveyed(gift: Gift) -> tuple[str, ...]:
    """The gift's patterns; whoever may break the glass may have everything, so that is what giving it takes."""
    if gift.rights.meet(BREAK_GLASS) and "*" not in gift.rights.permits.texts:
        return (*gift.rights.permits.texts, "*")
    return gift.rights.permits.texts


def _permits(every: Iterable[Grant], tenant: Tenant, gift: Gift) -> Iterator[Grant]:
    for grant in every:
        if grant.effect != "permit" or grant.tenant not in tenant.path:
            continue
        if grant.resource is not None and grant.resource != gift.resource:
            continue
        if not grant.inherit and (grant.tenant != tenant.id or gift.inherit):
            continue
        if grant.expires_at is not None and (gift.expires_at is None or grant.expires_at < gift.expires_at):
            continue
        yield grant


def _forbids(facts: Facts, every: Iterable[Grant], tenant: Tenant, gift: Gift) -> Iterator[Grant]:
    """Forbids that hold where the gift would, also those that begin later or further down."""
    for grant in every:
        if grant.effect != "forbid":
            continue
        if grant.resource is not None and gift.resource is not None and grant.resource != gift.resource:
            continue
        if grant.tenant in tenant.path or (gift.inherit and tenant.id in facts.path(grant.tenant)):
            yield grant


def _holds(held: Rights, pattern: str, gift: Rights) -> bool:
    """Whether one grant conveys all of ``pattern`` that the gift would."""
    return any(covers(wide, pattern) for wide in held.permits.texts) and all(
        not meet(left_out, pattern) or any(covers(wide, left_out) for wide in gift.but_not.texts)
        for left_out in held.but_not.texts
    )


def _takes(forbidden: Rights, pattern: str, gift: Rights) -> bool:
    """Whether a forbid takes away something of ``pattern`` that the gift would convey."""
    return any(
        meet(each, pattern) and not any(covers(wide, each) for wide in gift.but_not.texts)
        for each in forbidden.permits.texts
    )


def _extent(gift: Gift) -> str:
    parts = []
    if gift.resource is not None:
        parts.append(f" on {gift.resource[0]} {gift.resource[1]!r}")
    if gift.inherit:
        parts.append(" and below")
    parts.append(" for ever" if gift.expires_at is None else f" until {gift.expires_at:%Y-%m-%dT%H:%M:%SZ}")
    return "".join(parts)
