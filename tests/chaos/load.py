"""Producers: each transaction counts up what it wants of some keys and enqueues them, and some roll back."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import DatabaseError, connections

from better_compute.contract.errors import ComputeError
from better_compute.engine.contexts import WorkPort
from better_compute.store.transaction import transaction

KINDS = ("arena.nodes", "arena.single", "arena.many")
KEYS = 40
HOT = 4

WANT = "UPDATE arena_wants SET want = want + 1 WHERE kind = %s AND key = %s"


class _Undecided(Exception):
    """Rolls a producer's transaction back."""


@dataclass
class Load:
    """``producers`` threads, until :meth:`stop`. Every transaction's content follows from the seed."""

    seed: int
    producers: int = 3
    failed: int = 0
    rolled_back: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start the threads."""
        for number in range(self.producers):
            thread = threading.Thread(target=self._produce, args=(number,), name=f"producer-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End them and wait."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _produce(self, number: int) -> None:
        lots = random.Random(f"{self.seed} producer {number}")  # noqa: S311 - load, no secret
        try:
            while not self._stopping.wait(lots.uniform(0.0, 0.02)):
                kind = lots.choice(KINDS)
                of = HOT if lots.random() < 0.3 else KEYS
                keys = sorted({f"key-{lots.randint(1, of)}" for _ in range(lots.choice((1, 1, 1, 2, 5)))})
                commits = lots.random() < 0.8
                delay = timedelta(milliseconds=200) if lots.random() < 0.1 else None
                linger = lots.uniform(0.0, 0.02) if lots.random() < 0.2 else 0.0
                try:
                    self._once(kind, keys, commits, delay, linger)
                except _Undecided:
                    self.rolled_back += 1
                except (DatabaseError, ComputeError):
                    # Whether it had committed, its counters say as well as its keys.
                    self.failed += 1
                    connections.close_all()
                    self._stopping.wait(0.1)
        finally:
            connections.close_all()

    def _once(self, kind: str, keys: list[str], commits: bool, delay: timedelta | None, linger: float) -> None:
        with transaction(), connections["default"].cursor() as cursor:
            for key in keys:
                cursor.execute(WANT, [kind, key])
            WorkPort().enqueue_many(kind, keys, delay=delay)
            time.sleep(linger)
            if not commits:
                raise _Undecided
