"""What modules are given: the ports, bound to one module, one call or one run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NoReturn

from better_compute import registry
from better_compute.contract import names
from better_compute.contract.durations import milliseconds
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.module import ModuleSpec
from better_compute.contract.ports import LeaseInfo, Principal, Signal
from better_compute.engine import wakeup as wakeup  # a process that can enqueue can also wake workers
from better_compute.engine.shards import shard_for
from better_compute.store import clock, outbox, transaction
from better_compute.store.sql import SqlPort
from better_compute.store.work import WorkRow


@dataclass(frozen=True, slots=True)
class EventsPort:
    """Publishes to the outbox, with the trace context of the call that is running."""

    trace_context: str | None = None

    def publish(self, *, type: str, tenant_id: str, subject: str, data: Mapping[str, Any]) -> None:
        """Insert an event in the open transaction; see the port."""
        for what, pattern, value in (("type", names.EVENT_TYPE, type), ("tenant id", names.TENANT_ID, tenant_id)):
            if not names.matches(pattern, value):
                raise ValueError(f"Event {what} {value!r} does not match {pattern.pattern}.")
        if not subject:
            raise ValueError(f"Event {type!r} needs a subject such as 'widget/w1'.")
        outbox.insert(type=type, tenant_id=tenant_id, subject=subject, data=data, trace_context=self.trace_context)


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
class Unserved:
    """Stands in for a port whose module is not hosted; using it says which one is missing."""

    port: str
    module: str

    def __getattr__(self, name: str) -> NoReturn:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"ctx.{self.port}.{name} is not served here.",
            mend=f"Host the module that serves it: {self.module}.",
        )


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
    commands: Any = Unserved("commands", "node-controllers")
    desired: Any = Unserved("desired", "node-controllers")
    secrets: Any = Unserved("secrets", "core secrets (COMPUTE['SECRET'])")
    usage: None = None


@dataclass(frozen=True, slots=True)
class BoundMethodContext(BoundModuleContext):
    """The context of one call."""

    principal: Principal = field(kw_only=True)
    tenant_id: str | None = field(kw_only=True)
    request_id: str = field(kw_only=True)


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
        log=logging.getLogger(f"better_compute.module.{spec.name}"),
    )
