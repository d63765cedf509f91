"""Runs keys of one reconciler under leases, and says how each ended. Writes nothing of the queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors

from better_compute import conf
from better_compute.contract.errors import LeaseLost
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, SYNC_AGAIN, Outcome
from better_compute.contract.reconcilers import BatchReconciler, Reconciler
from better_compute.engine import backoff
from better_compute.engine.contexts import BoundReconcileContext
from better_compute.engine.holds import AnyAbort, Hold
from better_compute.store import ends, health
from better_compute.store.claims import Claimed
from better_compute.store.ends import Ended
from better_compute.store.failures import describe_failure, trace_failure
from better_compute.store.fence import Fence
from better_compute.store.sql import SqlPort

log: Final = logging.getLogger(__name__)

_OUTSIDE_FENCE: Final = (
    "a write outside ctx.sql.transaction(), which a worker's connection refuses because no fence would guard it"
)
_IDLE: Final = (
    " (A fenced transaction may send nothing for {ms} ms, half of WORKER.TTL_MS, so that a frozen holder cannot keep"
    " its lease: do slow work outside of ctx.sql.transaction(), or raise TTL_MS.)"
)

#: Classes of exceptions, as ``except`` takes them.
_Fails = type[BaseException] | tuple[type[BaseException], ...]

_inside: Final[ContextVar[str | None]] = ContextVar("compute_inside_a_run_of", default=None)


def inside() -> str | None:
    """The reconciler whose run this thread is in; None outside of one."""
    return _inside.get()


@contextmanager
def _run_of(kind: str) -> Iterator[None]:
    token = _inside.set(kind)
    try:
        yield
    finally:
        _inside.reset(token)


@dataclass(slots=True)
class Batch:
    """Keys of one kind that ended, until they are written; ``lost`` counts those whose lease was gone."""

    kind: str
    done: list[Ended] = field(default_factory=list)
    stay: list[Ended] = field(default_factory=list)
    failed: list[Ended] = field(default_factory=list)
    lost: int = 0

    @property
    def ran(self) -> int:
        """How many keys were run."""
        return len(self.done) + len(self.stay) + len(self.failed) + self.lost

    def settle(self, hold: Hold, claimed: Claimed, outcome: Outcome) -> None:
        """Note a run that answered."""
        name, epoch = hold.lease.name, hold.lease.epoch
        if outcome is SYNC_AGAIN:
            self.stay.append(Ended(claimed, name, epoch))
        elif claimed.every_ms is not None:
            self.stay.append(Ended(claimed, name, epoch, wait_ms=claimed.every_ms))
        else:
            self.done.append(Ended(claimed, name, epoch))

    def fail(self, hold: Hold, claimed: Claimed, error: str) -> None:
        """Note a run that raised."""
        wait = backoff.wait_ms(claimed.attempts)
        self.failed.append(Ended(claimed, hold.lease.name, hold.lease.epoch, wait, backoff.floor_ms(wait), error=error))

    @property
    def all_done(self) -> bool:
        """Whether every key that ran is done, so that deleting them is all there is to write."""
        return bool(self.done) and not (self.stay or self.failed or self.lost)

    @property
    def ended(self) -> list[str]:
        """The keys that answered or raised."""
        return [run.claimed.key for run in (*self.done, *self.stay, *self.failed)]

    def write(self, cursor: object, member: str) -> dict[str, float]:
        """Write every end, fenced; returns the keys that are due still, because somebody holds or changed their row.

        With each comes for how many seconds at least it is to be left alone. A failure waits as long as an enqueue
        would have to: whoever holds its row may be about to mend it.
        """
        left = self.forgive(cursor, member, ends.finish_done(cursor, member, self.kind, self.done))
        stayed = ends.finish_stay(cursor, member, self.kind, self.stay)
        left.update((run.claimed.key, 0.0) for run in self.stay if run.claimed.key not in stayed)
        failed = ends.finish_failed(cursor, member, self.kind, self.failed)
        left.update((run.claimed.key, run.floor_ms / 1_000) for run in self.failed if run.claimed.key not in failed)
        return left

    def forgive(self, cursor: object, member: str, deleted: Collection[str]) -> dict[str, float]:
        """Forget the failures of keys that answered DONE and were not deleted; returns those keys, as :meth:`write`."""
        left = [run for run in self.done if run.claimed.key not in deleted]
        ends.finish_stay(cursor, member, self.kind, [run for run in left if run.claimed.attempts])
        return {run.claimed.key: 0.0 for run in left}


def context_for(spec: ModuleSpec, holds: Sequence[Hold]) -> BoundReconcileContext:
    """The context of a run under ``holds``; of several, ``shard`` is None and ``lease`` the first by name."""
    found = sorted({hold.lease.name: hold.lease for hold in holds}.values(), key=lambda lease: lease.name)
    return BoundReconcileContext(
        module=spec.name,
        sql=SqlPort(fence=Fence(found)),
        options=spec.options,
        log=logging.getLogger(f"better_compute.module.{spec.name}"),
        shard=holds[0].shard if len(found) == 1 else None,
        lease=found[0],
        signal=holds[0].abort if len(found) == 1 else AnyAbort([hold.abort for hold in holds]),
    )


def context_under(spec: ModuleSpec, hold: Hold) -> BoundReconcileContext:
    """The context of a run under one hold, made once for each."""
    made: BoundReconcileContext | None = hold.contexts.get(spec.name)
    if made is None:
        made = hold.contexts[spec.name] = context_for(spec, [hold])
    return made


def run_keys(
    spec: ModuleSpec,
    reconciler: Reconciler,
    claims: Sequence[tuple[Claimed, Hold]],
    *,
    may_start: Callable[[Hold], bool],
    until: float | None = None,
    started: Callable[[Sequence[str]], None] = lambda keys: None,
    fails: _Fails = (Exception, SystemExit),
) -> Batch:
    """Run keys one after the other, or in one call for a :class:`BatchReconciler`.

    Parameters
    ----------
    may_start
        Asked before each key: whether its lease is still trusted.
    until
        ``time.monotonic()`` after which no further key is started; the rest stays queued.
    started
        Told which keys are about to run, and of none when they have.
    fails
        What a run may raise as a failure of its key. A worker takes everything, since an ``asyncio.CancelledError`` or
        a ``KeyboardInterrupt`` that a handler raises would end the thread of every key after it; a step by hand leaves
        alone what is meant for the caller, such as Ctrl-C and the outcomes of pytest.
    """
    with _run_of(reconciler.name):
        return _run(spec, reconciler, claims, may_start, until, started, fails)


def _run(
    spec: ModuleSpec,
    reconciler: Reconciler,
    claims: Sequence[tuple[Claimed, Hold]],
    may_start: Callable[[Hold], bool],
    until: float | None,
    started: Callable[[Sequence[str]], None],
    fails: _Fails,
) -> Batch:
    batch = Batch(reconciler.name)
    if isinstance(reconciler, BatchReconciler):
        group = [(claimed, hold) for claimed, hold in claims if may_start(hold)]
        if group:
            started([claimed.key for claimed, _ in group])
            _run_many(spec, reconciler, group, batch, fails)
            started(())
        return batch
    for claimed, hold in claims:
        if until is not None and monotonic() >= until and batch.ran:
            break
        if may_start(hold):
            started((claimed.key,))
            _run_one(spec, reconciler, claimed, hold, batch, fails)
    started(())
    return batch


def _run_one(
    spec: ModuleSpec, reconciler: Reconciler, claimed: Claimed, hold: Hold, batch: Batch, fails: _Fails
) -> None:
    try:
        outcome = _outcome(reconciler.run(context_under(spec, hold), claimed.key))
    except LeaseLost:
        hold.abort.set()
        batch.lost += 1
    except fails as error:
        batch.fail(hold, claimed, _describe(reconciler, claimed.key, error))
    else:
        batch.settle(hold, claimed, outcome)


def _run_many(
    spec: ModuleSpec, reconciler: BatchReconciler, group: Sequence[tuple[Claimed, Hold]], batch: Batch, fails: _Fails
) -> None:
    keys = [claimed.key for claimed, _ in group]
    try:
        answers = reconciler.run_many(context_for(spec, [hold for _, hold in group]), keys)
        outcomes = [_outcome(answers.get(key, DONE)) for key in keys]
    except LeaseLost:
        for _, hold in group:
            hold.abort.set()
        batch.lost += len(group)
    except fails as error:
        described = _describe(reconciler, keys[0] if len(keys) == 1 else f"{len(keys)} keys", error)
        for claimed, hold in group:
            batch.fail(hold, claimed, described)
    else:
        for (claimed, hold), outcome in zip(group, outcomes, strict=True):
            batch.settle(hold, claimed, outcome)


def _outcome(answer: object) -> Outcome:
    if answer is DONE or answer is SYNC_AGAIN:
        return answer
    try:
        return Outcome(answer)  # type: ignore[arg-type]
    except ValueError:
        raise TypeError(f"run answered {answer!r}; return DONE or SYNC_AGAIN.") from None


def _describe(reconciler: Reconciler, what: str, error: BaseException) -> str:
    """Log the failure with its stack, mend the connection, and return what the row will say."""
    log.error("%s failed for %s\n%s", reconciler.name, what, trace_failure(error))
    text = describe_failure(error)
    connection = connections[conf.current().database]
    if isinstance(error.__cause__, errors.ReadOnlySqlTransaction) and not _is_standby(connection):
        text += f" (This was {_OUTSIDE_FENCE}.)"
    if isinstance(error.__cause__, errors.IdleInTransactionSessionTimeout):
        text += _IDLE.format(ms=conf.current().worker.idle_ms)
    if not connection.in_atomic_block and connection.connection is not None and not connection.is_usable():
        # After a failover or a killed backend the next key must not meet the same dead connection. One that is
        # merely old stays: tick() has a cursor on it.
        connection.close()
    return text


def _is_standby(connection: BaseDatabaseWrapper) -> bool:
    """Tell a failover's read-only server from our own guard; a standby's connection is dropped."""
    try:
        standby = health.is_standby(connection.alias)
    except Exception:
        standby = True
    if standby:
        connection.close()
    return standby
