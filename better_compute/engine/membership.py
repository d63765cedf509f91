"""One process's membership of a role: who it is, which leases it holds, and until when it may trust that.

Every step is a plain function of the database, driven by the keeper thread of a worker, by ``tick()`` and
by tests alike; nothing here starts a thread or sleeps.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final
from uuid import uuid4

from better_compute import conf
from better_compute.contract.contexts import LeaseInfo
from better_compute.contract.reconcilers import Reconciler, Role
from better_compute.engine.holds import Hold
from better_compute.engine.periodic import declared
from better_compute.engine.rendezvous import assign, prefer
from better_compute.engine.shards import SHARDS
from better_compute.store import leases, members, pauses
from better_compute.store.members import Member

#: Among a member's kinds: it runs a sharded reconciler, so it takes part in sharing the shards.
SHARED: Final = "shard:*"


@dataclass(slots=True)
class Membership:
    """A member of ``role``.

    Parameters
    ----------
    reconcilers
        The reconcilers of this role that the process hosts, by name.
    connections
        PostgreSQL connections the process may hold, for doctor.
    """

    role: Role
    reconcilers: Mapping[str, Reconciler]
    connections: int = 0
    settings: conf.Worker = field(default_factory=lambda: conf.current().worker)
    id: str = ""
    holds: dict[str, Hold] = field(default_factory=dict)
    #: Scopes an operator has paused.
    paused: frozenset[str] = frozenset()
    #: Every live member as of the last :meth:`balance`.
    crowd: frozenset[str] = frozenset()
    #: Seconds of the process's own clock, and what names a member at every join; a simulation gives its own.
    clock: Callable[[], float] = monotonic
    fresh_id: Callable[[], str] = lambda: str(uuid4())
    _trusted_until: float = 0.0
    _takes: bool = True
    #: The id under which the others were told to plan without it.
    _drained: str = ""

    @property
    def sharded(self) -> bool:
        """Whether it takes part in sharing the shards: only when it runs a sharded reconciler of its own."""
        return any(reconciler.shard_by != "none" for reconciler in self.reconcilers.values())

    @property
    def trusted(self) -> bool:
        """Whether no lease can have been lost yet: true up to a margin before the end that was last written."""
        return self.clock() < self._trusted_until

    def lease_names(self) -> dict[str, int | None]:
        """Every lease this member could use, with its shard."""
        names: dict[str, int | None] = {}
        if self.sharded:
            names.update({leases.shard_lease(self.role, shard): shard for shard in range(SHARDS)})
        for name, reconciler in self.reconcilers.items():
            if reconciler.shard_by == "none":
                names[leases.singleton_lease(name)] = None
        return names

    def hold_for(self, reconciler: Reconciler, shard: int) -> Hold | None:
        """The hold under which a key of ``reconciler`` on ``shard`` may run; None when there is none."""
        if reconciler.shard_by == "none":
            return self.holds.get(leases.singleton_lease(reconciler.name))
        return self.holds.get(leases.shard_lease(self.role, shard))

    def holds_of(self, reconciler: Reconciler) -> list[Hold]:
        """The holds under which keys of ``reconciler`` may be started."""
        if reconciler.shard_by == "none":
            hold = self.holds.get(leases.singleton_lease(reconciler.name))
            found = [] if hold is None else [hold]
        else:
            found = [hold for hold in tuple(self.holds.values()) if hold.shard is not None]
        return [hold for hold in found if not hold.leaving and not hold.abort.aborted]

    def is_paused(self, kind: str) -> bool:
        """Whether an operator has paused ``kind`` or this member."""
        return f"kind:{kind}" in self.paused or f"member:{self.id}" in self.paused

    def join(self, cursor: Any) -> None:
        """Register under a fresh id, holding nothing; a former self is forgotten, and its keys are no suspects."""
        self.distrust()
        self.holds.clear()
        if self.id:
            members.leave(cursor, self.id)
            self.id = ""
        fresh = self.fresh_id()
        id = fresh if self.role == "controllers" else f"{self.role}/{fresh}"
        sent = self.clock()
        members.register(
            cursor,
            id=id,
            role=self.role,
            host=socket.gethostname(),
            pid=os.getpid(),
            ttl_ms=self.settings.ttl_ms,
            connections=self.connections,
            kinds=[*self.reconcilers, *([SHARED] if self.sharded else []), *declared(self.reconcilers.values())],
            pooled=self.settings.pooled,
        )
        leases.ensure(cursor, self.lease_names())
        # Only now: a registration that was half done or not answered is begun again, and its row ends by itself.
        self.id = id
        self._trust(sent)

    def renew(self, cursor: Any) -> bool:
        """Push the end ahead, and hold what the database says this member holds.

        False when this member is dead: it must stop its runs and join anew.
        """
        sent = self.clock()
        if not members.renew(cursor, self.id, self.settings.ttl_ms, pooled=self.settings.pooled):
            self.distrust()
            return False
        self._agree(leases.held_by(cursor, self.id))
        self._trust(sent)
        return True

    def distrust(self) -> None:
        """Trust no lease until the next renewal, and ask every run to end."""
        self._trusted_until = 0.0
        for hold in tuple(self.holds.values()):
            hold.abort.set()

    def bury(self, cursor: Any, own: Collection[str] = ()) -> list[str]:
        """Bury members that are dead; their leases become free and their keys suspects.

        ``own`` are the ids of this process's other members.
        """
        # A little more than one beat, so that a renewal under way is no missed one.
        beat_ms = round(self.settings.tick_ms * 1.1)
        return members.bury(cursor, {self.id, *own}, ttl_ms=self.settings.ttl_ms, beat_ms=beat_ms)

    def balance(self, cursor: Any, running: Callable[[str], bool] = lambda lease: False) -> bool:
        """Give back what others should hold and take what this member should; True when anything changed.

        ``running`` tells whether a key runs under a lease: such a lease starts no more and goes later.
        """
        self.paused = pauses.scopes(cursor)
        live = members.live_members(cursor)
        self.crowd = frozenset(member.id for member in live)
        wanted = self.wanted(live)
        for name, hold in self.holds.items():
            hold.leaving = name not in wanted
        given = self.give_back(cursor, [name for name, hold in self.holds.items() if hold.leaving], running)
        taken = self.take(cursor, [name for name in wanted if name not in self.holds])
        return bool(given or taken)

    def wanted(self, live: Iterable[Member]) -> set[str]:
        """The leases this member should hold, of the members that live; every member computes the same."""
        peers = [member for member in live if member.role == self.role and not member.draining]
        names: set[str] = set()
        if self.sharded:
            sharers = [member.id for member in peers if SHARED in member.kinds]
            shards = [leases.shard_lease(self.role, shard) for shard in range(SHARDS)]
            names.update(name for name, owner in assign(shards, sharers).items() if owner == self.id)
        for kind, reconciler in self.reconcilers.items():
            if reconciler.shard_by == "none":
                name = leases.singleton_lease(kind)
                if prefer(name, [member.id for member in peers if kind in member.kinds]) == self.id:
                    names.add(name)
        return names

    def take(self, cursor: Any, names: Collection[str]) -> dict[str, int]:
        """Take those of ``names`` that are free; returns their epochs."""
        if not names or not self._takes:
            return {}
        taken = leases.acquire(cursor, self.id, names)
        shards = self.lease_names()
        for name, epoch in taken.items():
            self.holds[name] = self._hold(name, epoch, shards)
        return taken

    def give_back(
        self, cursor: Any, names: Collection[str], running: Callable[[str], bool] = lambda lease: False
    ) -> set[str]:
        """Give back those of ``names`` under which nothing runs; returns them."""
        idle = [name for name in names if not running(name)]
        given = leases.release(cursor, self.id, idle) if idle else set()
        for name in given:
            self.holds.pop(name, None)
        return given

    def retire(self, cursor: Any, running: Callable[[str], bool] = lambda lease: False) -> bool:
        """Take no more leases, let others plan without this member, and give back what nothing runs under.

        Call it again while keys run; True when anything changed.
        """
        self._takes = False
        drains = self._drained != self.id
        if drains:
            members.drain(cursor, self.id)
            self._drained = self.id
        for hold in self.holds.values():
            hold.leaving = True
        given = self.give_back(cursor, list(self.holds), running)
        return bool(given) or drains

    def leave(self, cursor: Any) -> None:
        """Give back everything and end the membership."""
        leases.release(cursor, self.id, list(self.holds))
        members.leave(cursor, self.id)
        self.distrust()
        self.holds.clear()

    def _hold(self, name: str, epoch: int, shards: Mapping[str, int | None]) -> Hold:
        return Hold(LeaseInfo(name, self.id, epoch), shards.get(name))

    def _agree(self, held: Mapping[str, int]) -> None:
        """Drop what is not held, whatever this member was told, and take on what it was not told of.

        A connection that is lost after a commit takes the answer with it. Neither would heal by itself: nobody
        takes the lease of a live member, and runs under an old epoch are refused by the fence again and again.
        """
        for name, hold in tuple(self.holds.items()):
            if held.get(name) != hold.lease.epoch:
                hold.abort.set()
                del self.holds[name]
        missed = held.keys() - self.holds.keys()
        if missed:
            shards = self.lease_names()
            self.holds.update({name: self._hold(name, held[name], shards) for name in sorted(missed)})

    def _trust(self, sent: float) -> None:
        margin_ms = min(1_000, self.settings.ttl_ms // 5)
        self._trusted_until = sent + (self.settings.ttl_ms - margin_ms) / 1_000
        for hold in tuple(self.holds.values()):
            if hold.abort.aborted:
                # Still the same lease and epoch: runs that were asked to end do, later ones may start.
                self.holds[hold.lease.name] = Hold(hold.lease, hold.shard, leaving=hold.leaving)
