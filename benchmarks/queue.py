"""Fills the work table and waits for it to be drained by the runtime of this process."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection

from benchmarks.reconcilers import module
from better_compute import registry
from better_compute.engine.runtime import Runtime
from better_compute.engine.shards import shard_for
from better_compute.store import transaction, work

#: Longest that a drain may take before it counts as hung, in seconds.
PATIENCE = 60.0


@contextmanager
def running_engine(*, patient: bool = True) -> Iterator[Runtime]:
    """The runtime of one process with the default settings; ``patient`` waits until it holds its leases."""
    with registry.override(*registry.current().modules, module()):
        runtime = Runtime(["controllers"])
        runtime.start()
        try:
            if patient:
                wait_until(
                    lambda: all(membership.holds for membership in runtime.memberships), "the member holds no lease"
                )
            yield runtime
        finally:
            runtime.stop()


def fill(kind: str, keys: int) -> None:
    """Put ``keys`` due keys into the table, in one statement and without waking anybody."""
    enqueue(kind, [f"{kind}-{number:06}" for number in range(keys)])


def enqueue(kind: str, names: Sequence[str]) -> None:
    """Put due keys into the table, in one statement and without waking anybody."""
    hosted = registry.current().reconcilers.get(kind)
    rows = [work.WorkRow(kind, name, shard_for(hosted, name) if hosted else -1) for name in names]
    with connection.cursor() as cursor:
        work.upsert(cursor, rows)


def drained(kind: str) -> bool:
    """Whether no key of ``kind`` is left."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT NOT EXISTS (SELECT FROM compute_work WHERE kind = %s)", [kind])
        return bool(cursor.fetchone()[0])


def wait_until(condition: object, problem: str, *, seconds: float = PATIENCE, pause: float = 0.002) -> None:
    """Look every ``pause`` seconds. Raises TimeoutError naming the ``problem``."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds:.0f} s {problem}")
        time.sleep(pause)


def drain(runtime: Runtime, kind: str, keys: int) -> float:
    """Keys a second, from right before their commit, when no poll can see them, until none is left."""
    with transaction.transaction():
        fill(kind, keys)
        began = time.perf_counter()
    runtime.wake(None)
    # Asking the database all the while would take from what is measured.
    while runtime.wait_idle(PATIENCE) and not drained(kind):
        runtime.wake(None)
    seconds = time.perf_counter() - began
    assert drained(kind), f"keys of {kind} are left after {PATIENCE:.0f} s"
    return keys / seconds
