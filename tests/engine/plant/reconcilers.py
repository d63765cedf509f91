"""Reconcilers that obey, fail, hang, die or write where they must not. Each tells the outbox what it did."""

import asyncio
import os
import threading
import time
from collections.abc import Mapping, Sequence

from better_compute import DONE, SYNC_AGAIN, BatchReconciler, Outcome, Periodic, ReconcileContext, Reconciler


def tell(ctx: ReconcileContext, what: str, key: str) -> None:
    with ctx.sql.transaction():
        say(ctx, what, key)


def say(ctx: ReconcileContext, what: str, key: str) -> None:
    data = {"pid": os.getpid(), "thread": threading.current_thread().name, "lease": ctx.lease.name}
    ctx.events.publish(type=f"plant.{what}", tenant_id="t", subject=key, data={**data, "epoch": ctx.lease.epoch})


class Marks(Reconciler):
    name = "plant.marks"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "ran", key)
        return DONE


class Nodes(Reconciler):
    name, shard_by = "plant.nodes", "node"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "ran", key)
        return DONE


class Placer(Reconciler):
    name, shard_by, role = "plant.placer", "pool", "scheduler"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "ran", key)
        return DONE


class Bulk(BatchReconciler):
    name, shard_by = "plant.bulk", "node"

    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        with ctx.sql.transaction():
            for key in keys:
                say(ctx, "ran", key)
            ctx.events.publish(type="plant.batch", tenant_id="t", subject="keys", data={"keys": list(keys)})
        return {}


class Waking(Reconciler):
    """Enqueues another key, and itself again, so that its process sends wake-ups all the time."""

    name = "plant.waking"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        with ctx.sql.transaction():
            ctx.work.enqueue("plant.marks", key)
        return SYNC_AGAIN


class Again(Reconciler):
    name = "plant.again"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "ran", key)
        return SYNC_AGAIN


class Slow(Reconciler):
    """Runs for as many seconds as the key says, unless its signal is set."""

    name = "plant.slow"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "started", key)
        aborted = ctx.signal.wait(float(key.rpartition(":")[2]))
        tell(ctx, "aborted" if aborted else "ended", key)
        return DONE


class Fails(Reconciler):
    name = "plant.fails"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "ran", key)
        raise ValueError(f"no \x00 luck with {key}")


class Quits(Reconciler):
    """Raises what is no ``Exception``: what a cancelled coroutine, Ctrl-C, a closed generator and ``exit()`` raise."""

    name = "plant.quits"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        kinds = {each.__name__: each for each in (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit, SystemExit)}
        raise kinds[key]("enough")


class QuitsMany(BatchReconciler):
    """The same, for all keys in one."""

    name = "plant.quits-many"

    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        raise KeyboardInterrupt("enough")


class Poison(Reconciler):
    """Takes its process along, without a word, for keys that begin with ``poison``."""

    name = "plant.poison"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "started", key)
        if key.startswith("poison"):
            os._exit(9)
        return DONE


class Outside(Reconciler):
    """Writes outside of its fenced transaction."""

    name = "plant.outside"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        ctx.sql.query("UPDATE compute_clock SET anchored_at = anchored_at")
        return DONE


class Holds(Reconciler):
    """Stays inside its fenced transaction for as many seconds as the key says, deaf to its signal."""

    name = "plant.holds"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        with ctx.sql.transaction():
            say(ctx, "held", key)
            time.sleep(float(key))
        return DONE


class Spins(Reconciler):
    """Computes for as many seconds as the key says, without a pause."""

    name = "plant.spins"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        until = time.monotonic() + float(key)
        while time.monotonic() < until:
            sum(range(1_000))
        tell(ctx, "spun", key)
        return DONE


class Beats(Reconciler):
    name = "plant.beats"
    periodic = (Periodic("beat", every="1s"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        tell(ctx, "ran", key)
        return DONE
