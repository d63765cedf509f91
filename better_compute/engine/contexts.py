"""What modules are given: the ports, bound to one module, one call or one run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from better_compute import registry
from better_compute.contract import names
from better_compute.contract.contexts import LeaseInfo, Signal
from better_compute.contract.durations import milliseconds
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.methods import MethodSpec, Resource, ResourceType
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import Outcome
from better_compute.contract.pages import Page
from better_compute.contract.principals import Principal
from better_compute.engine import wakeup as wakeup  # a process that can enqueue can also wake workers
from better_compute.engine.module_log import module_log
from better_compute.engine.sealing import SecretsPort
from better_compute.engine.shards import shard_for
from better_compute.store import clock, outbox, transaction
from better_compute.store.sql import SqlPort
from better_compute.store.work import WorkRow


@dataclass(frozen=True, slots=True)
class EventsPort:
    """Publishes to the outbox, with the trace context and the request id of the call that is running."""

    trace_context: str | None = None
    request_id: str | None = None

    #: The tenant whose resource the call is about; None where events of every tenant may be published.
    tenant_id: str | None = None
    #: Whether the caller might have made the same call in another tenant, one below its own for instance.
    reaches: Callable[[str], bool] = field(default=lambda _: False, repr=False)

    def publish(self, *, type: str, tenant_id: str, subject: str, data: Mapping[str, Any]) -> None:
        """Insert an event in the open transaction; see the port."""
        for what, pattern, value in (("type", names.EVENT_TYPE, type), ("tenant id", names.TENANT_ID, tenant_id)):
            if not names.matches(pattern, value):
                raise ValueError(f"Event {what} {value!r} does not match {pattern.pattern}.")
        if not subject:
            raise ValueError(f"Event {type!r} needs a subject such as 'widget/w1'.")
        if self.tenant_id is not None and tenant_id != self.tenant_id and not self.reaches(tenant_id):
            raise ValueError(
                f"Event {type!r} is of the tenant {tenant_id!r}, and the call acts in {self.tenant_id!r}; "
                "whose caller may not do the same there; publish for ctx.tenant_id, or declare a resource of the "
                "installation."
            )
        outbox.insert(
            type=type,
            tenant_id=tenant_id,
            subject=subject,
            data=data,
            trace_context=self.trace_context,
            request_id=self.request_id,
        )


@dataclass(frozen=True, slots=True)
class WorkPort:
    """Enqueues keys of registered reconcilers, in the transaction that is open."""

    def enqueue(self, kind: str, key: str, *, delay: timedelta | None = None) -> None:
        """Wake one key; see the port."""
        self.enqueue_many(kind, [key], delay=delay)

    def enqueue_many(self, kind: str, keys: Iterable[str], *, delay: timedelta | None = None) -> None:
        """Wake many keys; see the port."""
        reconciler = registry.current().reconcilers.get(kind)
        if reconciler is None:
            raise ComputeError(
                ErrorCode.INVALID_CONFIG,
                f"No hosted module has a reconciler named {kind!r}.",
                mend="Add its module to INSTALLED_APPS, or correct the kind.",
            )
        if isinstance(keys, str):
            raise ComputeError(
                ErrorCode.INVALID_INPUT,
                f"The {kind} keys {keys[:80]!r} are one string, whose characters would be the keys.",
                mend="Use enqueue() for one key, or put it into a list.",
            )
        delay_ms = 0 if delay is None else milliseconds(delay)
        rows = []
        for key in keys:
            problem = names.key_problem(key)
            if problem is not None:
                raise ComputeError(
                    ErrorCode.INVALID_INPUT,
                    f"The {kind} key {key[:80] if isinstance(key, str) else key!r} {problem}.",
                    mend=f"Use 1 to {names.MAX_KEY_LENGTH} characters.",
                )
            rows.append(WorkRow(kind, key, shard_for(reconciler, key), delay_ms))
        transaction.enqueue(rows)


@dataclass(frozen=True, slots=True)
class ClockPort:
    """``ctx.clock``."""

    def now(self) -> datetime:
        """``compute_now()``."""
        return clock.now()


@dataclass(frozen=True, slots=True)
class Served:
    """A port that a hosted module serves; using it where none does says which module is missing."""

    port: str
    module: str

    def __getattr__(self, name: str) -> Any:
        served = served_port(self.port)
        if served is None:
            raise ComputeError(
                ErrorCode.INVALID_CONFIG,
                f"ctx.{self.port}.{name} is not served here.",
                mend=f"Host the module that serves it: {self.module}.",
            )
        return getattr(served, name)


@dataclass(frozen=True, slots=True)
class BoundTenantHook:
    """A module's ``tenant_deleted`` with the module's own context."""

    spec: ModuleSpec

    @property
    def module(self) -> str:
        """The module's name."""
        return self.spec.name

    def __call__(self, tenant_id: str) -> Outcome:
        """Run it once, in the transaction that is open."""
        assert self.spec.tenant_deleted is not None  # noqa: S101 - HostedPort.tenant_hooks chose it
        return self.spec.tenant_deleted(module_context(self.spec), tenant_id)


@dataclass(frozen=True, slots=True)
class HostedPort:
    """``ctx.hosted``, a view of the registry; see :class:`better_compute.contract.ports.Hosted`."""

    @property
    def actions(self) -> frozenset[str]:
        """The merged catalog's actions."""
        return registry.current().actions

    @property
    def methods(self) -> Mapping[str, MethodSpec]:
        """Every hosted method, by path."""
        return registry.current().methods

    @property
    def resource_types(self) -> Mapping[str, ResourceType]:
        """The merged catalog's resource types."""
        return registry.current().resource_types

    def tenant_hooks(self) -> Sequence[BoundTenantHook]:
        """Every ``tenant_deleted``, in hosted order."""
        return [BoundTenantHook(spec) for spec in registry.current().modules if spec.tenant_deleted is not None]

    def port(self, id: str) -> Any:
        """The port served under ``id``, or None."""
        return served_port(id)


@dataclass(frozen=True, slots=True)
class BoundModuleContext:
    """A module's own context."""

    module: str
    sql: SqlPort
    options: Any
    log: logging.Logger
    events: EventsPort = EventsPort()
    work: WorkPort = WorkPort()
    clock: ClockPort = ClockPort()
    commands: Any = Served("commands", "node-controllers")
    desired: Any = Served("desired", "node-controllers")
    tenants: Any = Served("tenants", "tenancy")
    hosted: HostedPort = HostedPort()
    usage: None = None

    @property
    def secrets(self) -> SecretsPort:
        """Values sealed for this module."""
        return SecretsPort(self.module)


@dataclass(frozen=True, slots=True)
class BoundMethodContext(BoundModuleContext):
    """The context of one call."""

    principal: Principal = field(kw_only=True)
    tenant_id: str | None = field(kw_only=True)
    request_id: str = field(kw_only=True)
    judge: Callable[[str, Resource, str | None], bool] = field(kw_only=True, repr=False)
    #: Answers a page of this call's list.
    page: Callable[..., Page[Any]] = field(kw_only=True, repr=False)

    def permits(self, action: str, resource: Resource, tenant_id: str | None) -> bool:
        """Whether the caller may do ``action``; see the port."""
        return self.judge(action, resource, tenant_id)


@dataclass(frozen=True, slots=True)
class BoundReconcileContext(BoundModuleContext):
    """The context of one run."""

    shard: int | None = field(kw_only=True)
    lease: LeaseInfo = field(kw_only=True)
    signal: Signal = field(kw_only=True)


def module_context(spec: ModuleSpec) -> BoundModuleContext:
    """The context for ``self_check``, ``start`` and ``node_spec`` of a module."""
    return BoundModuleContext(
        module=spec.name,
        sql=SqlPort(),
        options=spec.options,
        log=module_log(spec.name),
    )


_ports: tuple[registry.Registry | None, dict[str, Any]] = (None, {})


def served_port(id: str) -> Any:
    """The port that a hosted module serves under ``id``, made once for a registry; None when none does."""
    global _ports
    hosted = registry.current()
    of, made = _ports
    if of is not hosted:
        of, made = _ports = (hosted, {})
    if id not in made:
        made[id] = next(
            (
                extension.implementation(module_context(spec))
                for spec in hosted.modules
                for extension in spec.extensions
                if extension.kind == "port" and extension.id == id
            ),
            None,
        )
    return made[id]
