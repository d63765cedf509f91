"""The ports a module reaches the system through: all it ever sees of the other rooms."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar

from better_compute.contract.methods import MethodSpec, Resource, ResourceType
from better_compute.contract.pages import Page, PageInput
from better_compute.contract.reconcilers import Outcome

_Row = TypeVar("_Row")
_Item = TypeVar("_Item")
#: A row's place in a list.
PageKey = tuple[str | int | None, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar SQL expression with ``%s`` parameters, to stand in a statement that someone else runs."""

    sql: str
    params: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a statement answered: rows as dictionaries, and how many rows it returned or touched."""

    rows: list[dict[str, Any]]
    row_count: int


class Sql(Protocol):
    """Parameterised SQL on the compute database; the ORM on the same connection joins the same transaction."""

    def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> QueryResult:
        """Run one statement with ``%s`` or ``%(name)s`` parameters."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Open a transaction, or a savepoint inside the one that is open.

        In a reconciler it begins by fencing the lease: :class:`LeaseLost` when the lease is gone.
        """
        ...


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


class Signal(Protocol):
    """Set when a run should end: on ``stop()`` and when its lease is lost."""

    @property
    def aborted(self) -> bool: ...

    def wait(self, timeout: float) -> bool:
        """Sleep up to ``timeout`` seconds; True as soon as the run should end."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """What a run holds: a lease's name, its holder and its epoch."""

    name: str
    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls. ``tenant_id`` is the tenant a token carries; a session of an operator has none."""

    id: str
    kind: Literal["session", "token", "internal"]
    tenant_id: str | None = None
    #: The Django user behind it, for the default authorizer; None for internal callers.
    user: Any = field(default=None, compare=False, repr=False)
    #: Whose rights count, when ``id`` names a credential: ``user/7`` or ``service/ci``. Empty: those of ``id``.
    acts_for: str = ""
    #: What the credential narrows those rights to; made by an authenticator and read by its authorizer.
    narrowed_to: Any = field(default=None, compare=False, repr=False)
    #: When a core token ends, so that an authorizer can let nothing that is given with it last longer.
    ends_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """An authorizer's answer. ``visible`` False makes a denial read NOT_FOUND instead of ACCESS_DENIED."""

    allowed: bool
    visible: bool = True
    reason: str = ""


class Authorizer(Protocol):
    """Who may do what. Default deny: anything not allowed is refused.

    One may also have ``tenants_allowed(principal, action)``, which answers the tenants in which it would allow the
    action on the tenant as a whole, or None for every one; lists of the admin are read by it.
    """

    def authorize(self, principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> Decision:
        """Judge ``action`` on ``resource``, which ``tenant_id`` owns (None: the installation itself)."""
        ...


@dataclass(frozen=True, slots=True)
class TenantStanding:
    """What was last said of a tenant; of one that is being deleted, how far its teardown is."""

    state: str
    reason: str
    since: datetime
    passes: int = 0
    #: The modules that had not let go of it in the last pass.
    blocked_by: tuple[str, ...] = ()


class AheadAuthorizer(Authorizer, Protocol):
    """An authorizer that lets the first statement of a call read what it needs, which spares it a statement."""

    def reading(self) -> Expression:
        """What to read; one value that can be cast to text. It takes no lock."""
        ...

    def authorize_ahead(
        self,
        principal: Principal,
        action: str,
        resource: Resource,
        tenant_id: str | None,
        *,
        read: str | None,
        at: datetime,
    ) -> Decision:
        """As :meth:`authorize`, with what :meth:`reading` came to in this transaction, and the call's time."""
        ...


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


class RoleMatrix(Protocol):
    """What roles come to, served as port ``role-matrix`` by a module that judges by roles."""

    def roles(self) -> Sequence[str]:
        """The roles that every installation has."""
        ...

    def relations(self) -> Sequence[str]:
        """How a call's tenant may stand to the one in which the role is granted; ``own`` first."""
        ...

    def outcome(self, role: str, action: str, relation: str, *, installation: bool) -> str:
        """``allowed``, or the code of the refusal; ``installation`` for what acts on no tenant."""
        ...


class TenantHook(Protocol):
    """A hosted module's ``tenant_deleted``, bound to that module's own context."""

    @property
    def module(self) -> str: ...

    def __call__(self, tenant_id: str) -> Outcome:
        """Run it once. It wants an open transaction, which becomes its own."""
        ...


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


class BearerCredential(Protocol):
    """A bearer credential that an authenticator knows by its form."""

    def principal(self) -> Principal:
        """Look it up, as the call's second statement.

        Raises
        ------
        ComputeError
            UNAUTHENTICATED for what is unknown, revoked or expired by the database's clock.
        """
        ...

    def note_use(self) -> None:
        """Note that a call was made with it; runs after the call, outside of its transaction."""
        ...


class Authenticator(Protocol):
    """Knows callers by bearer credentials of its own, served as port ``authenticator``."""

    def recognise(self, secret: str) -> BearerCredential | None:
        """Judge a bearer credential as far as that takes no database; None when it has not this authenticator's form.

        Runs outside of the call's transaction, so it may fetch keys. Raises UNAUTHENTICATED for a credential of its
        own form that is no good.
        """
        ...


class KeySource(Protocol):
    """Where resync reads the ids of nodes and pools from: the port ``key-source``, which inventory serves."""

    def keys(self, shard_by: Literal["node", "pool"], after: str, limit: int) -> Sequence[str]:
        """Return up to ``limit`` ids greater than ``after``, sorted by code point."""
        ...


class ModuleContext(Protocol):
    """What ``self_check``, ``start``, ``node_spec`` and every method and run get."""

    @property
    def module(self) -> str: ...
    @property
    def sql(self) -> Sql: ...
    @property
    def events(self) -> Events: ...
    @property
    def work(self) -> Work: ...
    @property
    def commands(self) -> Commands: ...
    @property
    def desired(self) -> Desired: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def secrets(self) -> Secrets: ...
    @property
    def usage(self) -> UsageRecorder | None: ...
    @property
    def tenants(self) -> Tenants: ...
    @property
    def hosted(self) -> Hosted: ...
    @property
    def options(self) -> Any:
        """The module's own options, decoded from ``COMPUTE[<module>]``; None without declared options."""
        ...

    @property
    def log(self) -> logging.Logger: ...


class MethodContext(ModuleContext, Protocol):
    """A module context plus the caller."""

    @property
    def principal(self) -> Principal: ...
    @property
    def tenant_id(self) -> str | None:
        """The tenant that owns the resource of this call."""
        ...

    @property
    def request_id(self) -> str: ...

    def page(
        self,
        input: PageInput,
        read: Callable[[PageKey | None, int], Sequence[_Row]],
        *,
        key: Callable[[_Row], PageKey],
        show: Callable[[_Row], _Item | None],
    ) -> Page[_Item]:
        """Answer one keyset page, with the cursor of the next.

        Parameters
        ----------
        read
            ``read(after, limit)`` reads up to ``limit`` rows behind the key ``after``, in the order of their keys.
        key
            A row's place in the list: text, integers and nulls, unique among its rows.
        show
            What the caller sees of a row; None leaves it out, so that a list shows what its caller may see.

        Raises
        ------
        ComputeError
            INVALID_INPUT for a cursor of another list; CURSOR_EXPIRED for one that is too old.
        """
        ...

    def permits(self, action: str, resource: Resource, tenant_id: str | None) -> bool:
        """Whether this caller may do ``action`` on ``resource`` of ``tenant_id``; what a list method filters by."""
        ...


class ReconcileContext(ModuleContext, Protocol):
    """A module context plus what the run holds."""

    @property
    def shard(self) -> int | None: ...
    @property
    def lease(self) -> LeaseInfo: ...
    @property
    def signal(self) -> Signal: ...
