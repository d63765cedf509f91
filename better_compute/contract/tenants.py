"""The states of tenants and where each stands, as other modules ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from better_compute.contract.outcomes import Outcome
from better_compute.contract.sql import Expression


@dataclass(frozen=True, slots=True)
class TenantStanding:
    """What was last said of a tenant; of one that is being deleted, how far its teardown is."""

    state: str
    reason: str
    since: datetime
    passes: int = 0
    #: The modules that had not let go of it in the last pass.
    blocked_by: tuple[str, ...] = ()


class Tenants(Protocol):
    """The states of tenants; the tenancy module serves it."""

    def reading(self, tenant_id: str) -> Expression:
        """What :meth:`admit` has to know for a query, for the first statement of the call; it takes no lock."""
        ...

    def admit(
        self,
        tenant_id: str,
        *,
        kind: Literal["mutation", "query"],
        also_while: AbstractSet[str] = ...,
        read: tuple[Any] | None = ...,
    ) -> None:
        """Refuse to go on unless the tenant, and every tenant above it, is in a state that allows it.

        The envelope asks before every handler; a reconciler asks before it adds anything to a tenant. For a
        mutation it holds off a suspension or deletion of those tenants until the open transaction ends, so that
        nothing can be added to a tenant that is being deleted. ``read`` is what :meth:`reading` came to in this
        transaction, in a tuple of one; a query that has it needs no round trip.

        Raises
        ------
        ComputeError
            INVALID_STATE with reason TENANT_SUSPENDED, TENANT_DELETING or TENANT_TORN_DOWN.
        """
        ...

    def delete(self, tenant_id: str, *, reason: str) -> bool:
        """Begin the teardown of a tenant in the open transaction; False when it has begun or ended already."""
        ...

    def suspend(self, tenant_id: str, *, reason: str) -> bool:
        """Suspend an active tenant in the open transaction; False when it is in another state."""
        ...

    def resume(self, tenant_id: str, *, reason: str) -> bool:
        """Resume a suspended tenant in the open transaction; False when it is in another state."""
        ...

    def state(self, tenant_id: str) -> str:
        """The tenant's own state, ``active`` when nothing else was ever said of it."""
        ...

    def blocked_by(self, tenant_id: str) -> Sequence[str]:
        """The modules that had not let go of the tenant in the last pass of its teardown."""
        ...

    def standings(self, tenant_ids: Sequence[str]) -> Mapping[str, TenantStanding]:
        """What was said of each of these tenants, in one statement; one that is missing is active."""
        ...


class TenantTree(Protocol):
    """Which tenants stand above which, served as port ``tenant-tree`` by the module that keeps the tree."""

    def root(self) -> str | None:
        """The tenant above all others, which can be neither suspended nor deleted."""
        ...

    def lineage(self, tenant_id: str) -> Expression:
        """A ``text[]`` of ``tenant_id`` and every tenant above it, in no order; the root may be left out."""
        ...


class TenantHook(Protocol):
    """A hosted module's ``tenant_deleted``, bound to that module's own context."""

    @property
    def module(self) -> str:
        """The name of the module whose hook it is."""
        ...

    def __call__(self, tenant_id: str) -> Outcome:
        """Run it once. It wants an open transaction, which becomes its own."""
        ...
