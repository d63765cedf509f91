"""The port ``tenants``: whether a call or a reconciler may go on for a tenant, and the verbs other modules use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from better_compute import ComputeError, ErrorCode, Expression, ModuleContext, TenantStanding

from . import records, states
from .states import State, Verb

#: Null when every tenant is active, as almost always.
_ADMIT: Final = """(
  SELECT json_agg(json_build_array(tenant_id, state, reason)) FROM compute_admit_tenants({lineage}, {hold})
)::text"""


@dataclass(frozen=True, slots=True)
class TenantsPort:
    """See :class:`better_compute.contract.tenants.Tenants`."""

    ctx: ModuleContext

    def reading(self, tenant_id: str) -> Expression:
        """The tenants of the line that are not active."""
        return self._admission(tenant_id, hold=False)

    def admit(
        self,
        tenant_id: str,
        *,
        kind: Literal["mutation", "query"],
        also_while: AbstractSet[str] = frozenset(),
        read: tuple[Any] | None = None,
    ) -> None:
        """Refuse what the state of the tenant, or of one above it, does not allow; at most one round trip."""
        if read is None or kind == "mutation":
            admission = self._admission(tenant_id, hold=kind == "mutation")
            rows = self.ctx.sql.query(f"SELECT {admission.sql} AS found", admission.params).rows
            read = (rows[0]["found"],)
        if read[0] is None:
            return
        for id, state, reason in msgspec.json.decode(read[0], type=list[tuple[str, State, str]]):
            if not states.admits(state, kind, also_while):
                raise states.refusal(id, state, reason, asked_for=tenant_id)
            if state is State.DELETING and kind == "mutation" and not records.touch(self.ctx, id):
                raise states.refusal(id, State.TORN_DOWN, reason, asked_for=tenant_id)

    def delete(self, tenant_id: str, *, reason: str) -> bool:
        """Begin a teardown unless it has begun."""
        # Neither state is ever left, so that such a tenant needs no lock.
        dying = (State.DELETING, State.TORN_DOWN)
        if records.read(self.ctx, tenant_id).state in dying:
            return False
        records.lock(self.ctx, tenant_id)
        if records.read(self.ctx, tenant_id).state in dying:
            return False
        change(self.ctx, tenant_id, Verb.DELETE, reason)
        return True

    def suspend(self, tenant_id: str, *, reason: str) -> bool:
        """Suspend it if it is active."""
        return self._change_from(State.ACTIVE, tenant_id, Verb.SUSPEND, reason)

    def resume(self, tenant_id: str, *, reason: str) -> bool:
        """Resume it if it is suspended."""
        return self._change_from(State.SUSPENDED, tenant_id, Verb.RESUME, reason)

    def _change_from(self, state: State, tenant_id: str, verb: Verb, reason: str) -> bool:
        records.lock(self.ctx, tenant_id)
        if records.read(self.ctx, tenant_id).state is not state:
            return False
        change(self.ctx, tenant_id, verb, reason)
        return True

    def state(self, tenant_id: str) -> str:
        """The tenant's own state."""
        return records.read(self.ctx, tenant_id).state.value

    def blocked_by(self, tenant_id: str) -> Sequence[str]:
        """The modules of the last pass's blockers."""
        return [blocker.module for blocker in records.read(self.ctx, tenant_id).blockers]

    def standings(self, tenant_ids: Sequence[str]) -> Mapping[str, TenantStanding]:
        """The rows of several tenants."""
        return {
            record.tenant_id: TenantStanding(
                state=record.state.value,
                reason=record.reason,
                since=record.changed_at,
                passes=record.passes,
                blocked_by=tuple(blocker.module for blocker in record.blockers),
            )
            for record in records.several(self.ctx, tenant_ids)
            if record.changed_at is not None
        }

    def _admission(self, tenant_id: str, *, hold: bool) -> Expression:
        tree = self.ctx.hosted.port("tenant-tree")
        lineage = Expression("ARRAY[%s]::text[]", [tenant_id]) if tree is None else tree.lineage(tenant_id)
        return Expression(_ADMIT.format(lineage=lineage.sql, hold="true" if hold else "false"), lineage.params)


def change(ctx: ModuleContext, tenant_id: str, verb: Verb, reason: str) -> records.Record:
    """Apply a verb, except to the root of the tree.

    Raises
    ------
    ComputeError
        INVALID_STATE with reason ROOT_TENANT for the root; otherwise as :func:`records.apply`.
    """
    tree = ctx.hosted.port("tenant-tree")
    if tree is not None and tree.root() == tenant_id:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"{tenant_id!r} is the root tenant, so it cannot {verb}: every other tenant stands below it.",
            mend="Name the tenant below it that you mean.",
            reason="ROOT_TENANT",
        )
    return records.apply(ctx, tenant_id, verb, reason)
