"""What the core hands to a module: its ports, the caller of a method, the lease of a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from better_compute.contract.methods import Resource
from better_compute.contract.pages import Page, PageInput, PageKey
from better_compute.contract.ports import Clock, Commands, Desired, Events, Hosted, Secrets, UsageRecorder, Work
from better_compute.contract.principals import Principal
from better_compute.contract.sql import Sql
from better_compute.contract.tenants import Tenants

_Row = TypeVar("_Row")
_Item = TypeVar("_Item")


class Signal(Protocol):
    """Set when a run should end: on ``stop()`` and when its lease is lost."""

    @property
    def aborted(self) -> bool:
        """Whether the run should end."""
        ...

    def wait(self, timeout: float) -> bool:
        """Sleep up to ``timeout`` seconds; True as soon as the run should end."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """What a run holds: a lease's name, its holder and its epoch."""

    name: str
    holder: str
    epoch: int


class ModuleContext(Protocol):
    """What ``self_check``, ``start``, ``node_spec`` and every method and run get."""

    @property
    def module(self) -> str:
        """The name of the module it was made for."""
        ...

    @property
    def sql(self) -> Sql:
        """SQL on the compute database."""
        ...

    @property
    def events(self) -> Events:
        """The outbox."""
        ...

    @property
    def work(self) -> Work:
        """The work queue."""
        ...

    @property
    def commands(self) -> Commands:
        """The commands to agents."""
        ...

    @property
    def desired(self) -> Desired:
        """The desired state of nodes."""
        ...

    @property
    def clock(self) -> Clock:
        """The database's clock."""
        ...

    @property
    def secrets(self) -> Secrets:
        """Values sealed at rest."""
        ...

    @property
    def usage(self) -> UsageRecorder | None:
        """None in this release."""
        ...

    @property
    def tenants(self) -> Tenants:
        """The states of tenants."""
        ...

    @property
    def hosted(self) -> Hosted:
        """What is hosted beside the module."""
        ...

    @property
    def options(self) -> Any:
        """The module's own options, decoded from ``COMPUTE[<module>]``; None without declared options."""
        ...

    @property
    def log(self) -> logging.Logger:
        """The module's logger."""
        ...


class MethodContext(ModuleContext, Protocol):
    """A module context plus the caller."""

    @property
    def principal(self) -> Principal:
        """Who calls."""
        ...

    @property
    def tenant_id(self) -> str | None:
        """The tenant that owns the resource of this call."""
        ...

    @property
    def request_id(self) -> str:
        """The call's id in the log, in its audit record and in problems."""
        ...

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
    def shard(self) -> int | None:
        """0 to 255; None where the reconciler is not sharded, and under several leases at once."""
        ...

    @property
    def lease(self) -> LeaseInfo:
        """What the run holds; of several leases the first by name."""
        ...

    @property
    def signal(self) -> Signal:
        """Set when the run should end."""
        ...
