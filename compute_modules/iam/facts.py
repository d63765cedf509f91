"""Everything a decision is made from, as immutable objects in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from .patterns import Patterns, Rights
from .roles import BUILT_IN

Effect = Literal["permit", "forbid"]
ResourceKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Tenant:
    """A place in the tree. ``path`` holds the root first and the tenant itself last."""

    id: str
    kind: str
    path: tuple[str, ...]
    #: What may be done in it and below at all; None sets no bound of its own.
    ceiling: Patterns | None = None


@dataclass(frozen=True, slots=True)
class Who:
    """A principal that the module has a row of."""

    id: str
    kind: str
    tenant_id: str | None
    disabled: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """A permit or a forbid that is not revoked."""

    id: str
    principal: str
    effect: Effect
    #: A role, or empty when the grant carries patterns of its own.
    role: str
    patterns: Patterns
    tenant: str
    resource: ResourceKey | None
    #: Whether a permit holds in the tenants below too; a forbid always does.
    inherit: bool
    starts_at: datetime | None
    expires_at: datetime | None
    break_glass: bool = False

    def active(self, at: datetime) -> bool:
        """Whether it holds at this time."""
        return (self.starts_at is None or self.starts_at <= at) and (self.expires_at is None or at < self.expires_at)


@dataclass(frozen=True, slots=True)
class Held:
    """One principal's grants at one tenant: those for the whole tenant, and those for single resources."""

    general: tuple[Grant, ...] = ()
    by_resource: Mapping[ResourceKey, tuple[Grant, ...]] = field(default_factory=dict)

    def concerning(self, resource: ResourceKey | None) -> Iterator[Grant]:
        """The grants that a question about ``resource`` must look at."""
        yield from self.general
        if resource is not None and self.by_resource:
            yield from self.by_resource.get(resource, ())


@dataclass(frozen=True, slots=True)
class Holdings:
    """All grants of one principal."""

    by_id: Mapping[str, Grant]
    at: Mapping[str, Held]

    @classmethod
    def of(cls, grants: Iterable[Grant]) -> Holdings:
        """Sort grants by tenant and resource."""
        by_id = {grant.id: grant for grant in grants}
        general: dict[str, list[Grant]] = {}
        single: dict[str, dict[ResourceKey, list[Grant]]] = {}
        for grant in by_id.values():
            if grant.resource is None:
                general.setdefault(grant.tenant, []).append(grant)
            else:
                single.setdefault(grant.tenant, {}).setdefault(grant.resource, []).append(grant)
        return cls(
            by_id,
            {
                tenant: Held(
                    tuple(general.get(tenant, ())),
                    {key: tuple(found) for key, found in single.get(tenant, {}).items()},
                )
                for tenant in general.keys() | single.keys()
            },
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows that are new or changed; a grant or a role that ended is named in ``gone``."""

    tenants: tuple[Tenant, ...] = ()
    principals: tuple[Who, ...] = ()
    roles: tuple[tuple[str, Rights | None], ...] = ()
    grants: tuple[Grant, ...] = ()
    #: (principal, grant id) of revoked grants.
    gone: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """A consistent state of the module's tables, as of one version of them."""

    version: int = 0
    #: Of the tables themselves; another one means that nothing known holds any more.
    generation: str = ""
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    principals: Mapping[str, Who] = field(default_factory=dict)
    roles: Mapping[str, Rights] = field(default_factory=lambda: dict(BUILT_IN))
    holdings: Mapping[str, Holdings] = field(default_factory=dict)
    #: Who has a grant at a tenant.
    holders: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def rights(self, grant: Grant) -> Rights:
        """What a grant conveys; nothing when its role is gone."""
        if not grant.role:
            return Rights(grant.patterns)
        return self.roles.get(grant.role, Rights(Patterns()))

    def path(self, tenant_id: str) -> tuple[str, ...]:
        """The tenants above ``tenant_id`` and itself, the root first; empty for one that has no place."""
        tenant = self.tenants.get(tenant_id)
        return () if tenant is None else tenant.path

    def changed(self, changes: Changes, version: int, generation: str) -> Facts:
        """The facts after ``changes``; these here stay as they are for whoever reads them."""
        roles = dict(self.roles)
        for name, rights in changes.roles:
            if rights is None:
                roles.pop(name, None)
            else:
                roles[name] = rights
        holdings, holders = self._regranted(changes)
        return replace(
            self,
            version=version,
            generation=generation,
            tenants={**self.tenants, **{tenant.id: tenant for tenant in changes.tenants}},
            principals={**self.principals, **{who.id: who for who in changes.principals}},
            roles=roles,
            holdings=holdings,
            holders=holders,
        )

    def _regranted(self, changes: Changes) -> tuple[Mapping[str, Holdings], Mapping[str, frozenset[str]]]:
        if not changes.grants and not changes.gone:
            return self.holdings, self.holders
        touched: dict[str, dict[str, Grant]] = {}

        def of(principal: str) -> dict[str, Grant]:
            if principal not in touched:
                known = self.holdings.get(principal)
                touched[principal] = dict(known.by_id) if known else {}
            return touched[principal]

        for grant in changes.grants:
            of(grant.principal)[grant.id] = grant
        for principal, id in changes.gone:
            of(principal).pop(id, None)
        holdings = dict(self.holdings)
        at: dict[str, set[str]] = {}
        for principal, grants in touched.items():
            before = holdings.get(principal)
            holdings[principal] = after = Holdings.of(grants.values())
            for tenant in (before.at.keys() if before else set()) | after.at.keys():
                members = at.setdefault(tenant, set(self.holders.get(tenant, ())))
                (members.add if tenant in after.at else members.discard)(principal)
        return holdings, {**self.holders, **{tenant: frozenset(members) for tenant, members in at.items()}}
