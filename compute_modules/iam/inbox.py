"""The inbox: events of where tenants are kept, each taken once, and each no more than a reason to look there again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from better_compute import ModuleContext

from .outside import TenantEvent

#: The reconciler that re-reads a tenant.
KIND: Final = "iam.tenants"
#: How long an event's id is remembered. An older one that comes again only makes us look again.
KEPT_DAYS: Final = 30
#: Most rows that one call forgets.
_FORGOTTEN: Final = 10_000

Received = Literal["new", "known", "poison"]

_TAKE: Final = """
INSERT INTO compute_iam_inbox (id, type, tenant_id, problem, received_at) VALUES (%s, %s, %s, %s, compute_now())
ON CONFLICT (id) DO NOTHING
"""
_FORGET: Final = """
DELETE FROM compute_iam_inbox WHERE id IN (
  SELECT id FROM compute_iam_inbox WHERE received_at < compute_now() - %s::interval ORDER BY received_at LIMIT %s)
"""


@dataclass(frozen=True, slots=True)
class Inbox:
    """Takes events from any thread of any process; see :class:`compute_modules.iam.outside.Receiver`."""

    ctx: ModuleContext

    def receive(self, event: TenantEvent | Mapping[str, Any]) -> Received:
        """Remember the event's id and wake whoever re-reads its tenant, both in one transaction.

        Order does not matter, since nothing is read from an event but whom to ask about.

        Returns
        -------
        str
            ``new``; ``known`` for an id that was taken before; ``poison`` for what is no event, which is kept as a
            finding and delays no other.
        """
        try:
            known = event if isinstance(event, TenantEvent) else msgspec.convert(event, TenantEvent)
            # Also one that was made without validation.
            read = msgspec.convert(msgspec.to_builtins(known), TenantEvent)
            problem = "" if b"\x00" not in (read.id + read.type).encode() else "It holds a NUL character."
        except (msgspec.ValidationError, TypeError, UnicodeEncodeError) as error:
            read, problem = None, str(error) or type(error).__name__
        if read is None or problem:
            self._take(_poison_id(event), "", "", problem[:500])
            return "poison"
        return "new" if self._take(read.id, read.type, read.tenant_id, "") else "known"

    def _take(self, id: str, type: str, tenant_id: str, problem: str) -> bool:
        with self.ctx.sql.transaction():
            new = self.ctx.sql.query(_TAKE, [id, type, tenant_id, problem]).row_count == 1
            if new and not problem:
                self.ctx.work.enqueue(KIND, tenant_id)
        return new


def forget(ctx: ModuleContext) -> int:
    """Delete the ids that have been kept long enough; how many. Runs in the open transaction."""
    return ctx.sql.query(_FORGET, [f"{KEPT_DAYS} days", _FORGOTTEN]).row_count


def _poison_id(event: object) -> str:
    """What tells one poisonous event from another."""
    return f"poison:{hashlib.sha256(repr(event)[:65_536].encode('utf-8', 'replace')).hexdigest()}"
