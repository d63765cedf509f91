"""Grants: given within the giver's own rights, and taken back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from better_compute import ComputeError, ErrorCode, MethodContext, ModuleContext

from . import giving, principals, states
from .facts import Effect, Facts, Grant
from .giving import Gift
from .patterns import Patterns, Rights, split
from .projection import Reading, projection
from .roles import OWNER
from .states import State, Verb

COLUMNS: Final = (
    "id, principal_id, effect, role, patterns, tenant_id, resource_type, resource_id, inherit, starts_at, expires_at,"
    " reason, break_glass, created_at, created_by, revoked_at, revoked_by"
)


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


@dataclass(frozen=True, slots=True)
class Record:
    """A grant's row, and its state by the database's clock."""

    row: dict[str, Any]
    now: datetime
    patterns: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The grant's id."""
        return str(self.row["id"])

    @property
    def state(self) -> State:
        """Pending, active, expired or revoked."""
        return states.state_of(
            self.now,
            starts_at=self.row["starts_at"],
            expires_at=self.row["expires_at"],
            revoked_at=self.row["revoked_at"],
        )


def begin(ctx: ModuleContext) -> Reading:
    """Follow every other change of who may do what, and read the facts as they are then.

    Takes the lock of the version row until the open transaction ends: what is checked next cannot be outdated by
    another change, two owners that revoke each other at once included.
    """
    ctx.sql.query("SELECT compute_iam_raise()")
    return projection.read(ctx)


def create(ctx: MethodContext, wanted: NewGrant) -> str:
    """Make a grant and return its id.

    Raises
    ------
    ComputeError
        INVALID_INPUT, NOT_FOUND for what does not exist, ACCESS_DENIED for more than the giver has, IN_USE for a
        forbid that would leave a tenant without an owner.
    """
    reading = begin(ctx)
    rights = _rights(ctx, reading.facts, wanted)
    _check_times(wanted, reading.at)
    _check_resource(ctx, wanted)
    principals.ensure_seen(ctx, wanted.principal, reading.facts.path(wanted.tenant))
    if wanted.effect == "permit":
        gift = Gift(rights, wanted.tenant, wanted.inherit, wanted.resource, wanted.expires_at)
        giving.require(ctx, reading.facts, gift, reading.at)
    return insert(ctx, wanted, reading)


def insert(ctx: MethodContext, wanted: NewGrant, reading: Reading) -> str:
    """Write a grant that was judged, see that an owner is left, and tell of it."""
    id = uuid.uuid4()
    type, resource_id = wanted.resource or ("", "")
    ctx.sql.query(
        f"INSERT INTO compute_iam_grants ({COLUMNS})"  # noqa: S608 - constant names
        " VALUES (%s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s, %s, %s, compute_now(), %s, NULL, '')",
        [
            id,
            wanted.principal,
            wanted.effect,
            wanted.role,
            msgspec.json.encode(list(wanted.patterns)).decode(),
            wanted.tenant,
            type,
            resource_id,
            wanted.inherit,
            wanted.starts_at,
            wanted.expires_at,
            wanted.reason,
            wanted.break_glass,
            ctx.principal.id,
        ],
    )
    if wanted.effect == "forbid":
        keep_an_owner(ctx, reading, wanted.principal)
    # Told in the tenant that the call acts in, which for the owner of a new one is the tenant above.
    tell(ctx, "iam.grant-created", ctx.tenant_id or wanted.tenant, str(id), wanted.principal)
    return str(id)


def revoke(ctx: MethodContext, grant_id: str) -> Record:
    """Take a grant back; it acts at the next request of whoever had it.

    Lifting a forbid gives what it forbade, so only somebody who holds that may do it, and nobody for itself.

    Raises
    ------
    ComputeError
        INVALID_STATE for one that has ended; IN_USE with reason LAST_OWNER; ACCESS_DENIED for a forbid.
    """
    reading = begin(ctx)
    record = read(ctx, grant_id)
    states.GRANT.after(grant_id, record.state, Verb.REVOKE)
    if record.row["effect"] == "forbid":
        _check_lifting(ctx, reading, grant_id)
    end(ctx, [grant_id])
    if record.row["effect"] == "permit":
        keep_an_owner(ctx, reading, record.row["principal_id"])
    tell(ctx, "iam.grant-revoked", record.row["tenant_id"], grant_id, record.row["principal_id"])
    return read(ctx, grant_id)


def end(ctx: MethodContext, grant_ids: Sequence[str]) -> None:
    """Mark grants revoked."""
    ctx.sql.query(
        "UPDATE compute_iam_grants SET revoked_at = compute_now(), revoked_by = %s"
        " WHERE id = ANY(%s::uuid[]) AND revoked_at IS NULL",
        [ctx.principal.id, list(grant_ids)],
    )


def read(ctx: ModuleContext, grant_id: str) -> Record:
    """One grant. Raises NOT_FOUND."""
    rows = ctx.sql.query(
        f"SELECT {COLUMNS}, compute_now() AS now FROM compute_iam_grants WHERE id = %s",  # noqa: S608
        [grant_id],
    ).rows
    if not rows:
        raise ComputeError(ErrorCode.NOT_FOUND, f"There is no grant {grant_id}.", mend="grants.list shows them.")
    return record(rows[0])


def record(row: dict[str, Any]) -> Record:
    """A row as a record."""
    patterns = row["patterns"]
    return Record(row, row["now"], msgspec.json.decode(patterns) if isinstance(patterns, str) else patterns)


def keep_an_owner(ctx: MethodContext, before: Reading, principal: str) -> None:
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


def owners(facts: Facts, tenant_id: str, at: datetime) -> set[str]:
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


def tell(ctx: ModuleContext, type: str, tenant_id: str, grant_id: str, principal: str, **more: Any) -> None:
    """Publish what happened to a grant."""
    ctx.events.publish(
        type=type, tenant_id=tenant_id, subject=f"grant/{grant_id}", data={"principal": principal, **more}
    )


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
        check_patterns(ctx, wanted.patterns)
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


def check_patterns(ctx: ModuleContext, texts: Sequence[str]) -> None:
    """Refuse what is no pattern, and what matches no action that exists."""
    actions = [split(action) for action in ctx.hosted.actions]
    for text in texts:
        try:
            area, verb = split(text)
        except ValueError as error:
            raise ComputeError(ErrorCode.INVALID_INPUT, str(error), mend="iam.catalog lists the actions.") from None
        if not any(area in ("*", a) and verb in ("*", v) for a, v in actions):
            raise ComputeError(
                ErrorCode.INVALID_INPUT,
                f"{text!r} matches no action of a hosted module.",
                mend="iam.catalog lists the actions.",
                reason="ACTION_UNKNOWN",
            )


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


def _check_lifting(ctx: MethodContext, reading: Reading, grant_id: str) -> None:
    grant = next((g for h in reading.facts.holdings.values() for g in h.by_id.values() if g.id == grant_id), None)
    if grant is None or giving.is_trusted(ctx.principal):
        return
    if grant.principal == (ctx.principal.acts_for or ctx.principal.id):
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            "Nobody lifts a forbid of its own.",
            mend="Ask another owner of the tenant.",
            reason="EXCEEDS_GIVER",
        )
    gift = Gift(reading.facts.rights(grant), grant.tenant, inherit=True, resource=grant.resource)
    giving.require(ctx, reading.facts, gift, reading.at)


#: A state by the database's clock, as a condition.
_IN_STATE: Final = {
    None: "true",
    "revoked": "revoked_at IS NOT NULL",
    "expired": "revoked_at IS NULL AND expires_at <= compute_now()",
    "pending": "revoked_at IS NULL AND starts_at > compute_now()"
    " AND (expires_at IS NULL OR expires_at > compute_now())",
    "active": "revoked_at IS NULL AND (starts_at IS NULL OR starts_at <= compute_now())"
    " AND (expires_at IS NULL OR expires_at > compute_now())",
}


def page(
    ctx: ModuleContext,
    tenant_id: str,
    *,
    principal: str | None = None,
    role: str | None = None,
    state: str | None = None,
    break_glass: bool | None = None,
    after: str | None = None,
    limit: int = 50,
) -> list[Record]:
    """Up to ``limit`` of a tenant's grants, by id."""
    rows = ctx.sql.query(
        f"SELECT {COLUMNS}, compute_now() AS now FROM compute_iam_grants"  # noqa: S608 - constant names and conditions
        f" WHERE tenant_id = %s AND {_IN_STATE[state]}"
        " AND (%s::text IS NULL OR principal_id = %s) AND (%s::text IS NULL OR role = %s)"
        " AND (%s::boolean IS NULL OR break_glass = %s) AND (%s::uuid IS NULL OR id > %s::uuid)"
        " ORDER BY id LIMIT %s",
        [tenant_id, principal, principal, role, role, break_glass, break_glass, after, after, limit],
    ).rows
    return [record(row) for row in rows]
