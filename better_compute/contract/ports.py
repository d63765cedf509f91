"""The ports a module reaches the system through: all it ever sees of the other rooms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from better_compute.contract.methods import MethodSpec, ResourceType
from better_compute.contract.tenants import TenantHook


class Events(Protocol):
    """The outbox: an event commits with the change it tells of, or not at all."""

    def publish(self, *, type: str, tenant_id: str, subject: str, data: Mapping[str, Any]) -> None:
        """Insert an event in the open transaction.

        In a call on a tenant's resource that tenant's events, and another's only where the caller may do the call's
        action there too; in a call on the installation's resource, and in a run, any tenant's.

        Raises
        ------
        RuntimeError
            Outside a transaction.
        ValueError
            For a malformed type, tenant id or subject, another tenant's id, and data that JSON cannot carry: NaN,
            an infinity, a NUL character, a lone surrogate, an object of no JSON form.
        """
        ...


class Work(Protocol):
    """The coalescing work queue: a wake-up commits with the change that needs it."""

    def enqueue(self, kind: str, key: str, *, delay: timedelta | None = None) -> None:
        """Wake reconciler ``kind`` for ``key``. Raises RuntimeError outside a transaction."""
        ...

    def enqueue_many(self, kind: str, keys: Iterable[str], *, delay: timedelta | None = None) -> None:
        """Wake reconciler ``kind`` for every key, in one statement."""
        ...


class Commands(Protocol):
    """The durable command queue towards agents."""

    def enqueue(
        self,
        *,
        node_id: str,
        kind: str,
        payload: Any,
        idempotency_key: str,
        not_after: datetime | None = None,
        batch_id: str | None = None,
        subject: str | None = None,
    ) -> str:
        """Write a pending command in the open transaction and return its id; refuses an unregistered kind."""
        ...


@dataclass(frozen=True, slots=True)
class BatchLeaf:
    """What one command of a batch does: its ``kind``, to ``subject``, as ``node/<node id>``."""

    subject: str
    kind: str


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """A stored batch: while ``held``, none of its commands goes out before ``required`` operators have approved."""

    batch_id: str
    held: bool
    required: int
    size: int


class BatchCommands(Commands, Protocol):
    """A queue of commands that takes batches of destructive work; one made for a test need not."""

    def create_batch(
        self,
        tenant_id: str,
        scope: Sequence[BatchLeaf],
        reason: str,
        not_after_ms: int | None = None,
        created_by: str | None = None,
    ) -> CommandBatch:
        """Store a batch in the open transaction; a command with its ``batch_id`` must be one of ``scope``."""
        ...


class Desired(Protocol):
    """Desired state of nodes."""

    def invalidate(self, node_id: str) -> None:
        """Say, in the transaction that changes it, that a node's spec may have changed."""
        ...


class Clock(Protocol):
    """The database's clock, the only one that decides."""

    def now(self) -> datetime:
        """``compute_now()``: the statement's time plus the settable offset, timezone-aware."""
        ...


class Secrets(Protocol):
    """Values sealed at rest, bound to their module, tenant and record."""

    def seal(self, plaintext: bytes, *, tenant_id: str, record: str) -> bytes:
        """Seal a value for ``record`` (``webhook/w1``), 53 bytes longer than it is.

        Raises
        ------
        ComputeError
            INVALID_CONFIG when ``COMPUTE["SECRET"]`` is not set.
        """
        ...

    def open(self, sealed: bytes, *, tenant_id: str, record: str) -> bytes:
        """Open a sealed value.

        Raises
        ------
        ComputeError
            INTERNAL_ERROR with reason SEAL_BROKEN for a value that was changed or belongs elsewhere; INVALID_CONFIG
            with reason SECRET_MISSING when its secret was taken out of ``COMPUTE["SECRET"]``.
        """
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Whether the newest secret sealed it."""
        ...


class UsageRecorder(Protocol):
    """Declared on the contract and left unset in this release: usage goes through the IAM bridge."""

    def record(self, *, tenant_id: str, meter: str, quantity: int, idempotency_key: str) -> None: ...


class Hosted(Protocol):
    """What is hosted beside this module, for modules that serve all others."""

    @property
    def actions(self) -> frozenset[str]:
        """Every action of the merged catalog."""
        ...

    @property
    def methods(self) -> Mapping[str, MethodSpec]:
        """Every hosted method, by path."""
        ...

    @property
    def resource_types(self) -> Mapping[str, ResourceType]:
        """Every resource type of the merged catalog, by name; ``tenant`` and ``system`` are built in."""
        ...

    def tenant_hooks(self) -> Sequence[TenantHook]:
        """The ``tenant_deleted`` of every module that has one, plugins included, in hosted order."""
        ...

    def port(self, id: str) -> Any:
        """The port that a hosted module serves under ``id`` (see ``define_port``), None when none does."""
        ...


class KeySource(Protocol):
    """Where resync reads the ids of nodes and pools from: the port ``key-source``, which inventory serves."""

    def keys(self, shard_by: Literal["node", "pool"], after: str, limit: int) -> Sequence[str]:
        """Return up to ``limit`` ids greater than ``after``, sorted by code point."""
        ...
