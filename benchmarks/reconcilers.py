"""Reconcilers of the figures, hosted in the benchmark's process only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from time import perf_counter
from typing import ClassVar

from django.db import connection

from better_compute import DONE, BatchReconciler, Outcome, ReconcileContext, Reconciler
from better_compute.contract.module import ModuleSpec

WRITE = "UPDATE bench_rows SET runs = runs + 1 WHERE key = %s"
WRITE_MANY = "UPDATE bench_rows SET runs = runs + 1 WHERE key = ANY(%s)"


class NoOp(Reconciler):
    """Does nothing: what is left is the engine."""

    name = "bench.no-op"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return DONE


class ShardedNoOp(NoOp):
    """The same over 256 shards."""

    name = "bench.sharded"
    shard_by = "node"


class WriteEach(Reconciler):
    """One fenced transaction with one write for each key, on Django's connection."""

    name = "bench.write-each"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        with ctx.sql.transaction(), connection.cursor() as cursor:
            cursor.execute(WRITE, [key])
        return DONE


class WriteMany(BatchReconciler):
    """One fenced transaction with one statement for all keys of a batch."""

    name = "bench.write-many"

    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        with ctx.sql.transaction(), connection.cursor() as cursor:
            cursor.execute(WRITE_MANY, [list(keys)])
        return {}


class Spread(BatchReconciler):
    """Notes how many keys each member ran."""

    name = "bench.spread"
    shard_by = "node"

    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        with ctx.sql.transaction(), connection.cursor() as cursor:
            cursor.execute("INSERT INTO bench_spread (holder, keys) VALUES (%s, %s)", [ctx.lease.holder, len(keys)])
        return {}


class Timed(Reconciler):
    """Notes when each key's run started."""

    name = "bench.timed"
    started: ClassVar[dict[str, float]] = {}
    lock: ClassVar[Lock] = Lock()

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        now = perf_counter()
        with self.lock:
            self.started.setdefault(key, now)
        return DONE


def module() -> ModuleSpec:
    """A module that hosts them."""
    return ModuleSpec(
        name="bench",
        path="benchmarks.reconcilers",
        label="bench",
        reconcilers=(NoOp(), ShardedNoOp(), WriteEach(), WriteMany(), Spread(), Timed()),
    )
