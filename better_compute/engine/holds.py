"""A lease as its holder knows it, with the signal that its runs are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from time import monotonic
from typing import Any, Final, NamedTuple

from better_compute.contract.contexts import LeaseInfo

#: How often a run that waits under several leases looks at all of them.
LOOK_SECONDS: Final = 0.05


class Abort:
    """The :class:`better_compute.contract.contexts.Signal` of a run."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = Event()

    @property
    def aborted(self) -> bool:
        """Whether the run should end."""
        return self._event.is_set()

    def wait(self, timeout: float) -> bool:
        """Sleep up to ``timeout`` seconds; True as soon as the run should end."""
        return self._event.wait(timeout)

    def set(self) -> None:
        """Ask the run to end."""
        self._event.set()


class AnyAbort:
    """The signal of a run under several leases: the loss of any one ends it."""

    __slots__ = ("_aborts",)

    def __init__(self, aborts: Sequence[Abort]) -> None:
        self._aborts = aborts

    @property
    def aborted(self) -> bool:
        """Whether the run should end."""
        return any(abort.aborted for abort in self._aborts)

    def wait(self, timeout: float) -> bool:
        """Sleep up to ``timeout`` seconds; True within :data:`LOOK_SECONDS` of when the run should end."""
        until = monotonic() + timeout
        while not self.aborted:
            left = until - monotonic()
            if left <= 0:
                return False
            self._aborts[0].wait(min(left, LOOK_SECONDS))
        return True


class Floor(NamedTuple):
    """How far a shard was looked through for a kind: rows due before ``at`` are gone, or wait for a poll."""

    at: datetime
    #: As PostgreSQL reads it.
    text: str

    @classmethod
    def of(cls, at: datetime) -> Floor:
        """A floor at ``at``."""
        return cls(at, f'"{at}"')


@dataclass(slots=True)
class Hold:
    """A lease this process took. ``shard`` is None for a singleton."""

    lease: LeaseInfo
    shard: int | None = None
    abort: Abort = field(default_factory=Abort)
    #: To be given back as soon as nothing runs under it; no key is started any more.
    leaving: bool = False
    #: By kind, how far the shard was looked through.
    floors: dict[str, Floor] = field(default_factory=dict)
    #: By module, the context of its runs under this hold.
    contexts: dict[str, Any] = field(default_factory=dict)
