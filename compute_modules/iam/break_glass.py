"""Breaking the glass: everything in a tenant, for a while, with a reason and an alarm."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from better_compute import ComputeError, ErrorCode, MethodContext

from . import grants, principals, states
from .apps import Options
from .grants import NewGrant, Record
from .roles import OWNER
from .states import Verb

ACTIVATED: Final = "iam.break-glass-activated"
ENDED: Final = "iam.break-glass-ended"


def activate(ctx: MethodContext, tenant_id: str, *, reason: str, minutes: int) -> Record:
    """Make the caller an owner of the tenant and all below it until the time is over.

    That the caller may do this at all was granted by an owner; a forbid still beats it. The event is the alarm.

    Raises
    ------
    ComputeError
        INVALID_INPUT for more minutes than the installation allows; CONFLICT while the caller's last one lasts.
    """
    options: Options = ctx.options
    if minutes > options.break_glass_minutes:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"{minutes} minutes are more than the {options.break_glass_minutes} that are allowed.",
            mend="Ask for less; it can be activated again.",
        )
    reading = grants.begin(ctx)
    caller = ctx.principal.acts_for or ctx.principal.id
    holdings = reading.facts.holdings.get(caller)
    for grant in holdings.by_id.values() if holdings else ():
        if grant.break_glass and grant.tenant == tenant_id and grant.active(reading.at):
            raise ComputeError(
                ErrorCode.CONFLICT,
                f"The glass is broken already, until {grant.expires_at:%Y-%m-%dT%H:%M:%SZ}.",
                mend="End it with breakGlass.end first, or wait.",
            )
    principals.ensure(ctx, caller, by=ctx.principal.id)
    wanted = NewGrant(
        principal=caller,
        tenant=tenant_id,
        role=OWNER,
        inherit=True,
        expires_at=reading.at + timedelta(minutes=minutes),
        reason=reason,
        break_glass=True,
    )
    id = grants.insert(ctx, wanted, reading)
    grants.tell(ctx, ACTIVATED, tenant_id, id, caller, reason=reason, minutes=minutes)
    return grants.read(ctx, id)


def end(ctx: MethodContext, grant_id: str) -> Record:
    """End it before its time. Raises INVALID_STATE when it has ended, NOT_FOUND for another kind of grant."""
    grants.begin(ctx)
    record = grants.read(ctx, grant_id)
    if not record.row["break_glass"]:
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"The grant {grant_id} was not made by breaking the glass.",
            mend="grants.revoke takes back any other grant.",
        )
    states.GRANT.after(grant_id, record.state, Verb.REVOKE)
    grants.end(ctx, [grant_id])
    grants.tell(ctx, ENDED, record.row["tenant_id"], grant_id, record.row["principal_id"])
    return grants.read(ctx, grant_id)
