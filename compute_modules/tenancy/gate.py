"""The port ``tenants``: whether a call or a reconciler may go on for a tenant, and the verbs other modules use."""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from better_compute import ComputeError, ErrorCode, ModuleContext

from . import records, states
from .states import State, Verb


@dataclass(frozen=True, slots=True)
class TenantsPort:
    """See :class:`better_compute.contract.ports.Tenants`."""

    ctx: ModuleContext

    def admit(
        self, tenant_id: str, *, kind: Literal["mutation", "query"], also_while: AbstractSet[str] = frozenset()
    ) -> None:
        """Refuse what the state of the tenant, or of one above it, does not allow; one round trip."""
        found = self.ctx.sql.query(
            "SELECT tenant_id, state, reason FROM compute_admit_tenants(%s, %s)",
            [[*self._above(tenant_id), tenant_id], kind == "mutation"],
        )
        for row in found.rows:
            state = State(row["state"])
            if not states.admits(state, kind, also_while):
                raise states.refusal(row["tenant_id"], state, row["reason"], asked_for=tenant_id)

    def delete(self, tenant_id: str, *, reason: str) -> bool:
        """Begin a teardown unless it has begun."""
        records.lock(self.ctx, tenant_id)
        if records.read(self.ctx, tenant_id).state in (State.DELETING, State.TORN_DOWN):
            return False
        change(self.ctx, tenant_id, Verb.DELETE, reason)
        return True

    def state(self, tenant_id: str) -> str:
        """The tenant's own state."""
        return records.read(self.ctx, tenant_id).state.value

    def _above(self, tenant_id: str) -> Sequence[str]:
        tree = self.ctx.hosted.port("tenant-tree")
        return () if tree is None else tree.ancestors(tenant_id)


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
