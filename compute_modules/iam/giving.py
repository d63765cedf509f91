"""Who may give what: a grant may not exceed its giver's, in actions, place, resource or time.

Patterns are compared as patterns, not by the actions that exist today: who holds the two actions of an area does
not hold ``compute:<area>:*``, which will match a third one tomorrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from better_compute import ComputeError, ErrorCode, MethodContext, Principal

from .evaluation import Narrowing, narrowing
from .facts import Facts, Grant, ResourceKey, Tenant
from .patterns import EVERYTHING, Rights, covers, meet

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


def outlasts(one: datetime | None, other: datetime | None) -> bool:
    """Whether one end comes after the other; None is no end."""
    return other is not None and (one is None or one > other)


def require(ctx: MethodContext, facts: Facts, gift: Gift, at: datetime) -> None:
    """Refuse what the caller does not hold, or not for as long as its credential lasts.

    Raises
    ------
    ComputeError
        ACCESS_DENIED with reason EXCEEDS_GIVER naming the first pattern that the caller does not hold so far.
    """
    if is_trusted(ctx.principal):
        return
    giver = ctx.principal.acts_for or ctx.principal.id
    narrowed = narrowing(ctx.principal)
    if narrowed is not None and outlasts(gift.expires_at, narrowed.expires_at):
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            f"This call's token ends at {_text(narrowed.expires_at)}, and so does whatever is given with it.",
            mend="Give an end that is no later where there can be one; or call with what lasts longer.",
            reason="EXCEEDS_GIVER",
        )
    missing = exceeding(facts, giver, gift, at, narrowed)
    if missing is not None:
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            f"{giver} does not hold {missing!r} in {gift.tenant!r}{_extent(gift)}, so it cannot give it.",
            mend="Give what you hold yourself, there and for as long; or ask somebody who holds it.",
            reason="EXCEEDS_GIVER",
        )


def exceeding(facts: Facts, giver: str, gift: Gift, at: datetime, narrowed: Narrowing | None = None) -> str | None:
    """The first pattern of the gift that ``giver`` does not hold as wide and as long; None when it holds all.

    Whoever has the secret of the giver's credential too (``narrowed.makers``) must hold all of it as well.
    """
    return lacking(facts, giver, gift, _conveyed(gift), at, narrowed or Narrowing())


def lacking(
    facts: Facts, giver: str, gift: Gift, taken: Sequence[tuple[str, Rights]], at: datetime, narrowed: Narrowing
) -> str | None:
    """The first of the patterns ``taken``, each of some rights, that is not held where and as long as the gift is.

    None when all are, by ``giver`` and by each of ``narrowed.makers``.
    """
    tenant = facts.tenants.get(gift.tenant)
    who = facts.principals.get(giver)
    if tenant is None or (who is not None and who.disabled) or not _reaches(narrowed, tenant, gift):
        return taken[0][0]
    own = facts.holdings.get(giver)
    every = [*(own.by_id.values() if own else ()), *narrowed.carried]
    held = [grant for grant in _permits(every, tenant, gift) if grant.active(at)]
    forbids = list(_forbids(facts, every, tenant, gift, at))
    for pattern, rights in taken:
        if not rights.meet(pattern):
            continue
        if narrowed.actions is not None and not any(covers(wide, pattern) for wide in narrowed.actions.texts):
            return pattern
        if not any(_holds(facts.rights(grant), pattern, rights) for grant in held):
            return pattern
        if any(_takes(facts.rights(grant), pattern, rights) for grant in forbids):
            return pattern
    missing = (lacking(facts, maker, gift, taken, at, Narrowing()) for maker in narrowed.makers)
    return next((each for each in missing if each is not None), None)


def _reaches(narrowed: Narrowing, tenant: Tenant, gift: Gift) -> bool:
    """Whether a credential is good where and for as long as the gift would be."""
    if narrowed.tenant_id is not None and narrowed.tenant_id not in tenant.path:
        return False
    return not outlasts(gift.expires_at, narrowed.expires_at)


def _conveyed(gift: Gift) -> list[tuple[str, Rights]]:
    """The gift's patterns; whoever may break the glass may have everything, so that is what giving it takes."""
    patterns = [(text, gift.rights) for text in gift.rights.permits.texts]
    return [*patterns, ("*", EVERYTHING)] if gift.rights.meet(BREAK_GLASS) else patterns


def _permits(every: Iterable[Grant], tenant: Tenant, gift: Gift) -> Iterator[Grant]:
    for grant in every:
        if grant.effect != "permit" or grant.tenant not in tenant.path:
            continue
        if grant.resource is not None and grant.resource != gift.resource:
            continue
        if not grant.inherit and (grant.tenant != tenant.id or gift.inherit):
            continue
        if outlasts(gift.expires_at, grant.expires_at):
            continue
        yield grant


def _forbids(facts: Facts, every: Iterable[Grant], tenant: Tenant, gift: Gift, at: datetime) -> Iterator[Grant]:
    """Forbids that hold where the gift would, also those that begin later or further down."""
    for grant in every:
        if grant.effect != "forbid" or (grant.expires_at is not None and grant.expires_at <= at):
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
    parts.append(" for ever" if gift.expires_at is None else f" until {_text(gift.expires_at)}")
    return "".join(parts)


def _text(time: datetime | None) -> str:
    return "" if time is None else f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
