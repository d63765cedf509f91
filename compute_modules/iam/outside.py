"""Tenants that are kept elsewhere: the port to where they are, which the host gives.

``COMPUTE["iam"]["TENANT_SOURCE"]`` is the path of a callable that returns a :class:`TenantSource`. What it tells by
events are hints. What counts is what it answers when it is asked, so an event that is lost, late or told twice does
no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec
from django.utils.module_loading import import_string

from better_compute import ComputeError, ErrorCode, Meta, ModuleContext, TenantId, describe_failure

from .apps import Options

State = Literal["pending", "active", "suspended", "deleted"]


class OutsideTenant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A tenant as its home knows it now. Without a parent it stands right below our root."""

    id: TenantId
    state: State
    parent_id: TenantId | None = None
    kind: Literal["organisation", "project"] = "project"
    name: Annotated[str, Meta(max_length=128)] = ""


class TenantEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something happened to a tenant, or below it. Fields beyond these are ignored."""

    id: Annotated[str, Meta(min_length=1, max_length=255)]
    tenant_id: TenantId
    type: Annotated[str, Meta(max_length=128)] = ""


class Receiver(Protocol):
    """Where a source puts its events; see :class:`compute_modules.iam.inbox.Inbox`."""

    def receive(self, event: TenantEvent | Mapping[str, Any]) -> str:
        """Take an event; never raises for what stands in it."""
        ...


class TenantSource(Protocol):
    """What a host gives: tells of changes, and answers how things are. Threads share one."""

    def bind(self, inbox: Receiver) -> None:
        """Hand every event to ``inbox`` from now on; called once in each process that serves, and must not block."""
        ...

    def close(self) -> None:
        """Let go of what :meth:`bind` took."""
        ...

    def tenant(self, tenant_id: str) -> OutsideTenant | None:
        """How a tenant is now, None for one that is not there. Raises when it cannot be told: it is asked again."""
        ...

    def tenants(self, after: str, limit: int) -> Sequence[OutsideTenant]:
        """Up to ``limit`` tenants whose ids are greater than ``after``, by code point, deleted ones included."""
        ...


#: Required of a source.
_METHODS: Final = ("bind", "close", "tenant", "tenants")


def source(ctx: ModuleContext) -> TenantSource | None:
    """The process's source, None when the settings name none. Raises INVALID_CONFIG for a path to no source."""
    options: Options = ctx.options
    return _made(options.tenant_source) if options.tenant_source else None


@cache
def _made(path: str) -> TenantSource:
    try:
        made = import_string(path)()
    except Exception as error:
        raise _no_source(path, describe_failure(error)) from error
    missing = [name for name in _METHODS if not callable(getattr(made, name, None))]
    if missing:
        raise _no_source(path, f"what it returns has no {', '.join(missing)}")
    found: TenantSource = made
    return found


def _no_source(path: str, why: str) -> ComputeError:
    return ComputeError(
        ErrorCode.INVALID_CONFIG,
        f"COMPUTE['iam']['TENANT_SOURCE'] is {path!r}: {why}.",
        mend="Name a callable without parameters that returns a compute_modules.iam.outside.TenantSource.",
    )
