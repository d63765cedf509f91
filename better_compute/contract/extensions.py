"""Extensions: what a module or the settings plug into ports that other modules own.

Each is built with a ``define_*`` helper and is unique by ``kind:id@version``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

ExtensionKind = Literal[
    "driver",
    "attestor",
    "scheduler-plugin",
    "event-sink",
    "audit-sink",
    "usage-sink",
    "pool-policy",
    "port",
]

#: Proves that an extension came from a ``define_*`` helper.
_BUILT: Final = object()


@dataclass(frozen=True, slots=True)
class Extension:
    """One extension; never constructed directly."""

    kind: ExtensionKind
    id: str
    version: str
    implementation: Any
    _built: object = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> str:
        """``kind:id@version``, unique over all modules and settings."""
        return f"{self.kind}:{self.id}@{self.version}"


def built_by_helper(value: object) -> bool:
    """Tell whether ``value`` is an extension that a ``define_*`` helper built."""
    return isinstance(value, Extension) and value._built is _BUILT


class PoolPolicyValidator(Protocol):
    """Checks the parts of a pool policy that its module reads, before the write.

    Raises :class:`~better_compute.ComputeError` to refuse; any other error becomes
    ``INVALID_INPUT policy: ...``.
    """

    def __call__(self, policy: Mapping[str, Any], pool: Mapping[str, Any]) -> None: ...


def _define(kind: ExtensionKind, id: str, version: str, implementation: Any) -> Extension:
    return Extension(kind, id, version, implementation, _BUILT)


def define_driver(id: str, *, version: str, driver: Any) -> Extension:
    """A driver that acts on machines: power, boot, provision."""
    return _define("driver", id, version, driver)


def define_attestor(id: str, *, version: str, attestor: Any) -> Extension:
    """An attestor that judges a node's evidence of identity."""
    return _define("attestor", id, version, attestor)


def define_scheduler_plugin(id: str, *, version: str, plugin: Any) -> Extension:
    """A plugin that filters or scores nodes in the placer."""
    return _define("scheduler-plugin", id, version, plugin)


def define_event_sink(id: str, *, version: str, sink: Any) -> Extension:
    """A sink that receives every event of the outbox."""
    return _define("event-sink", id, version, sink)


def define_audit_sink(id: str, *, version: str, sink: Any) -> Extension:
    """A sink that receives sealed audit batches; one of them makes ``audit-sinks`` hosted."""
    return _define("audit-sink", id, version, sink)


def define_usage_sink(id: str, *, version: str, sink: Any) -> Extension:
    """A usage sink. Registration refuses it: usage goes to billing through the IAM bridge."""
    return _define("usage-sink", id, version, sink)


def define_pool_policy(id: str, *, version: str, validate: Callable[..., None]) -> Extension:
    """A :class:`PoolPolicyValidator`, called by ``pools.create`` and ``pools.update``."""
    return _define("pool-policy", id, version, validate)


def define_port(id: str, *, version: str, port: Callable[[Any], Any]) -> Extension:
    """A port that this module serves to all others; ``port(ctx)`` makes it from the module's own context.

    ``tenants``, ``commands`` and ``desired`` become ``ctx.<id>`` of every module; any other is reached as
    ``ctx.hosted.port(id)``. One module serves a port. ``ctx.secrets`` is the core's own, whoever serves that name.
    """
    return _define("port", id, version, port)
