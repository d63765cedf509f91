"""Grants: given within the giver's own rights, and taken back."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from better_compute import ComputeError, ErrorCode, MethodContext, ModuleContext

from . import giving, new_grants, owners, principals, states
from .giving import Gift
from .jsonb import decoded, encoded
from .new_grants import NewGrant
from .projection import Reading, projection
from .states import State, Verb

COLUMNS: Final = (
    "id, principal_id, effect, role, patterns, tenant_id, resource_type, resource_id, inherit, starts_at, expires_at,"
    " reason, break_glass, created_at, created_by, revoked_at, revoked_by"
)


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
    rights = new_grants.judge(ctx, wanted, reading)
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
            encoded(wanted.patterns),
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
        owners.keep_one(ctx, reading, wanted.principal)
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
        owners.keep_one(ctx, reading, record.row["principal_id"])
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
    return Record(row, row["now"], decoded(row["patterns"]))


def tell(ctx: ModuleContext, type: str, tenant_id: str, grant_id: str, principal: str, **more: Any) -> None:
    """Publish what happened to a grant."""
    ctx.events.publish(
        type=type, tenant_id=tenant_id, subject=f"grant/{grant_id}", data={"principal": principal, **more}
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
