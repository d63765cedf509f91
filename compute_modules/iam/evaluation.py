"""The decision: default deny, forbid beats permit, no tenant above its ceiling, no token beyond its owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from better_compute import Principal

from .facts import Facts, Grant, ResourceKey, Tenant
from .patterns import Patterns


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a credential narrows its owner's rights to: a tenant with those below it, and actions.

    None narrows nothing.
    """

    tenant_id: str | None = None
    actions: Patterns | None = None
    #: When it ends, and with it whatever is given with it; None for one without an end.
    expires_at: datetime | None = None
    #: Grants that the credential itself carries: claims of an identity provider.
    carried: tuple[Grant, ...] = ()
    #: Principals who have its secret too; it is worth no more than each of them.
    makers: tuple[str, ...] = ()


def narrowing(principal: Principal) -> Narrowing | None:
    """What the caller's credential narrows its rights to; a core token to its tenant, for as long as it lasts."""
    if principal.narrowed_to is not None:
        found: Narrowing = principal.narrowed_to
        return found
    if principal.tenant_id is None and principal.ends_at is None:
        return None
    return Narrowing(tenant_id=principal.tenant_id, expires_at=principal.ends_at)


@dataclass(frozen=True, slots=True)
class Question:
    """May ``principal`` do ``action`` in ``tenant`` (on ``resource``, if it is about a single one) at this time?"""

    principal: str
    action: str
    tenant: str
    at: datetime
    resource: ResourceKey | None = None
    narrowed: Narrowing | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. ``decided_by`` is the grant or the tenant's ceiling that decided; invisible reads NOT_FOUND."""

    allowed: bool
    reason: str
    visible: bool = True
    decided_by: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A grant that was looked at: whether it holds now, covers the tenant, and matches the action."""

    grant: Grant
    active: bool
    reaches: bool
    matches: bool

    @property
    def counts(self) -> bool:
        """Whether it took part in the decision."""
        return self.active and self.reaches and self.matches


def judge(facts: Facts, question: Question) -> Verdict:
    """Decide.

    The order: the tenant has a place; the principal is not disabled; something is granted to it there at all (else
    what it asks for is invisible to it); its token reaches so far; no forbid; no ceiling above; some permit; whoever
    made its token may do it too.
    """
    tenant = facts.tenants.get(question.tenant)
    if tenant is None:
        return Verdict(False, "TENANT_UNKNOWN", visible=False)
    who = facts.principals.get(question.principal)
    if who is not None and who.disabled:
        return Verdict(False, "PRINCIPAL_DISABLED", visible=False)
    visible, permit, forbid = False, None, None
    for grant in _concerning(facts, question, tenant):
        if not grant.active(question.at) or not _reaches(grant, tenant):
            continue
        visible = visible or grant.effect == "permit"
        if not facts.rights(grant).match(question.action):
            continue
        if grant.effect == "forbid":
            forbid = forbid or grant
        else:
            permit = permit or grant
    if not visible:
        return Verdict(False, "NOTHING_GRANTED", visible=False)
    outside = _outside_token(question, tenant)
    if outside is not None:
        return outside
    if forbid is not None:
        return Verdict(False, "FORBIDDEN", decided_by=forbid.id)
    ceiling = _ceiling_below(facts, tenant, question.action)
    if ceiling is not None:
        return Verdict(False, "CEILING", decided_by=ceiling)
    if permit is None:
        return Verdict(False, "PERMISSION_MISSING")
    return _beyond_makers(facts, question) or Verdict(True, "GRANTED", decided_by=permit.id)


def steps(facts: Facts, question: Question) -> list[Step]:
    """Every grant of the principal on the way from the root to the tenant, and what came of each."""
    tenant = facts.tenants.get(question.tenant)
    if tenant is None:
        return []
    return [
        Step(
            grant,
            active=grant.active(question.at),
            reaches=_reaches(grant, tenant),
            matches=facts.rights(grant).match(question.action),
        )
        for grant in _concerning(facts, question, tenant)
    ]


def _concerning(facts: Facts, question: Question, tenant: Tenant) -> Iterator[Grant]:
    if question.narrowed is not None:
        yield from (grant for grant in question.narrowed.carried if grant.tenant in tenant.path)
    holdings = facts.holdings.get(question.principal)
    if holdings is None:
        return
    for place in tenant.path:
        held = holdings.at.get(place)
        if held is not None:
            yield from held.concerning(question.resource)


def _reaches(grant: Grant, tenant: Tenant) -> bool:
    return grant.inherit or grant.effect == "forbid" or grant.tenant == tenant.id


def _outside_token(question: Question, tenant: Tenant) -> Verdict | None:
    narrowed = question.narrowed
    if narrowed is None:
        return None
    if narrowed.tenant_id is not None and narrowed.tenant_id not in tenant.path:
        return Verdict(False, "TOKEN_TENANT", visible=False)
    if narrowed.actions is not None and not narrowed.actions.match(question.action):
        return Verdict(False, "TOKEN_SCOPE")
    return None


def _beyond_makers(facts: Facts, question: Question) -> Verdict | None:
    for maker in question.narrowed.makers if question.narrowed else ():
        verdict = judge(facts, replace(question, principal=maker, narrowed=None))
        if not verdict.allowed:
            return Verdict(False, "TOKEN_MAKER", visible=verdict.visible, decided_by=verdict.decided_by)
    return None


def _ceiling_below(facts: Facts, tenant: Tenant, action: str) -> str | None:
    """The topmost tenant whose ceiling leaves the action out."""
    for place in tenant.path:
        ceiling = facts.tenants[place].ceiling
        if ceiling is not None and not ceiling.match(action):
            return place
    return None
