"""Breaking the glass: everything in a tenant, for a while, with a reason and an alarm."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from better_compute import ComputeError, ErrorCode, MethodContext, Principal

from . import grants, principals, states
from .apps import Options
from .evaluation import Narrowing, narrowing
from .facts import Facts
from .giving import BREAK_GLASS, Gift, lacking
from .grants import Record
from .new_grants import NewGrant
from .patterns import Patterns, Rights, covers
from .roles import OWNER
from .states import Verb

ACTIVATED: Final = "iam.break-glass-activated"
ENDED: Final = "iam.break-glass-ended"
_RIGHT: Final = Rights(Patterns((BREAK_GLASS,)))


def activate(ctx: MethodContext, tenant_id: str, *, reason: str, minutes: int) -> Record:
    """Make the caller an owner of the tenant until the time is over.

    That the caller may do this at all was granted by an owner; a forbid still beats it. It reaches as far down as that
    right does, and lasts no longer than it nor than the credential it is done with. The event is the alarm.

    Raises
    ------
    ComputeError
        INVALID_INPUT for more minutes than the installation allows; CONFLICT while the caller's last one lasts;
        ACCESS_DENIED by a token that is narrowed to some actions, or when the right has just ended.
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
    wanted_end = reading.at + timedelta(minutes=minutes)
    inherit, ends = _extent(reading.facts, ctx.principal, tenant_id, reading.at, wanted_end)
    principals.ensure(ctx, caller, by=ctx.principal.id)
    wanted = NewGrant(
        principal=caller,
        tenant=tenant_id,
        role=OWNER,
        inherit=inherit,
        expires_at=ends,
        reason=reason,
        break_glass=True,
    )
    id = grants.insert(ctx, wanted, reading)
    grants.tell(ctx, ACTIVATED, tenant_id, id, caller, reason=reason, minutes=minutes)
    return grants.read(ctx, id)


def _extent(facts: Facts, caller: Principal, tenant_id: str, at: datetime, wanted: datetime) -> tuple[bool, datetime]:
    """Whether it reaches the tenants below, and when it ends: the longest that the right to it goes, then the widest.

    Everybody who has the credential's secret must have that right, and be forbidden it nowhere below.
    """
    narrowed = narrowing(caller) or Narrowing()
    who = caller.acts_for or caller.id
    if narrowed.actions is not None and not any(covers(wide, "*") for wide in narrowed.actions.texts):
        raise _refused(who, tenant_id, "The token is narrowed to some actions, and this conveys all.", "EXCEEDS_GIVER")
    latest = wanted if narrowed.expires_at is None else min(wanted, narrowed.expires_at)
    holdings = (facts.holdings.get(principal) for principal in (who, *narrowed.makers))
    held = [*narrowed.carried, *(grant for each in holdings if each for grant in each.by_id.values())]
    ends = {grant.expires_at for grant in held if grant.expires_at is not None and at < grant.expires_at < latest}
    for end in sorted({latest, *ends}, reverse=True):
        for inherit in (True, False):
            gift = Gift(_RIGHT, tenant_id, inherit, expires_at=end)
            if lacking(facts, who, gift, [(BREAK_GLASS, _RIGHT)], at, narrowed) is None:
                return inherit, end
    raise _refused(who, tenant_id, "It is granted on single records only, or has just ended.", "PERMISSION_MISSING")


def _refused(who: str, tenant_id: str, why: str, reason: str) -> ComputeError:
    return ComputeError(
        ErrorCode.ACCESS_DENIED,
        f"{who} may not break the glass in {tenant_id!r}. {why}",
        mend="Call with a session or another token, or ask an owner of the tenant.",
        reason=reason,
    )


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
