"""Pause and resume a reconciler or a member during an incident.

A paused kind starts no key anywhere, a paused member none of its own; runs under way end by themselves, leases
stay where they are, and keys wait in the queue. Workers see it within a quarter of a tick, told by NOTIFY.
"""

from __future__ import annotations

from django.db import connections

from better_compute import conf, registry
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.store import pauses
from better_compute.store.members import MEMBERS_CHANNEL, live_members
from better_compute.store.transaction import transaction
from better_compute.store.wakeups import notify


def scope_of(*, kind: str | None, member: str | None) -> str:
    """The scope of a kind or a member. Raises INVALID_INPUT unless exactly one is given."""
    if (kind is None) == (member is None):
        what = "Neither a kind nor a member is named." if kind is None else "Both a kind and a member are named."
        raise ComputeError(ErrorCode.INVALID_INPUT, what, mend="Name one of the two.")
    return f"kind:{kind}" if member is None else f"member:{member}"


def require_known(scope: str) -> None:
    """Raise NOT_FOUND unless ``scope`` is a hosted kind or a live member."""
    what, _, name = scope.partition(":")
    if what == "kind":
        known = sorted(registry.current().reconcilers)
    else:
        with connections[conf.current().database].cursor() as cursor:
            known = [each.id for each in live_members(cursor)]
    if name not in known:
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"No {what} is named {name!r}.",
            mend=f"Known are {', '.join(known)}." if known else f"No {what} is known here.",
        )


def pause(scope: str, *, reason: str, by: str) -> None:
    """Pause ``scope`` and tell the workers."""
    with transaction(), connections[conf.current().database].cursor() as cursor:
        pauses.pause(cursor, scope, reason=reason, by=by)
        notify(cursor, MEMBERS_CHANNEL)


def resume(scope: str) -> bool:
    """Let ``scope`` go on and tell the workers; False when it was not paused."""
    with transaction(), connections[conf.current().database].cursor() as cursor:
        resumed = pauses.resume(cursor, scope)
        notify(cursor, MEMBERS_CHANNEL)
    return resumed


def paused() -> list[pauses.Pause]:
    """Everything that is paused."""
    with connections[conf.current().database].cursor() as cursor:
        return pauses.listed(cursor)
