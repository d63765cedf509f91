"""Seeded schedules over simulated members: the engine passes them, and an engine with a rule left out does not."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import ClassVar

import psycopg
import pytest
from django.db import connection
from django.db.transaction import on_commit

from better_compute import registry
from better_compute.contract.contexts import LeaseInfo, ReconcileContext
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, SYNC_AGAIN, Outcome
from better_compute.contract.reconcilers import Reconciler
from better_compute.engine.contexts import WorkPort
from better_compute.store import leases
from better_compute.store.session import connect
from better_compute.store.transaction import transaction
from better_compute.testing.simulation import MISHAPS, SEED_VARIABLE, Simulation, SimulationFailed, seeds
from tests.chaos import breaks

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = tuple(f"key-{number}" for number in range(6))
KINDS = ("t.sharded", "t.single")
STEPS = 150


class Evidence:
    """What was wanted, what committed runs have seen, and who was inside a fenced transaction when."""

    def __init__(self) -> None:
        self.watcher: psycopg.Connection[tuple[object, ...]] = connect("default", "watcher", {})
        self.wanted = {(kind, key): 0 for kind in KINDS for key in KEYS}
        self.seen = dict(self.wanted)
        self.moment = 0
        self.committed_at = dict(self.wanted)
        self.commits = 0
        self.wrong: list[str] = []

    def load(self, lots: random.Random) -> None:
        """Enqueue, roll back, or delete a row by hand, a deliberate loss, and often enqueue it anew."""
        kind, key = lots.choice(KINDS), lots.choice(KEYS)
        if lots.random() < 0.3:
            deleted = self.watcher.execute("DELETE FROM compute_work WHERE kind = %s AND key = %s", [kind, key])
            if deleted.rowcount:
                self.seen[kind, key] = self.wanted[kind, key]
            if not deleted.rowcount or lots.random() < 0.3:
                return
        commits = lots.random() < 0.85
        try:
            with transaction():
                WorkPort().enqueue(kind, key)
                if not commits:
                    raise KeyError(key)
        except KeyError:
            return
        self.wanted[kind, key] += 1

    def look(self) -> int:
        """A run looks; returns the moment."""
        self.moment += 1
        return self.moment

    def commit(self, of: tuple[str, str], saw: int, entered: int, lease: LeaseInfo) -> None:
        """Its transaction has just committed, and nothing else has moved since."""
        self.commits += 1
        if self.committed_at[of] > entered:
            self.wrong.append(f"two runs of {of} were inside at once")
        if leases.held(self.watcher.cursor()).get(lease.name) != (lease.holder, lease.epoch):
            self.wrong.append(f"a loser of {lease.name} committed {of}")
        self.committed_at[of] = self.look()
        self.seen[of] = max(self.seen[of], saw)

    def check(self) -> None:
        """The three properties, after every step."""
        rows = self.watcher.execute("SELECT kind, key FROM compute_work").fetchall()
        lost = sorted({of for of, wanted in self.wanted.items() if self.seen[of] < wanted} - set(rows))
        assert not lost, f"lost wake-ups: {lost}"
        assert not self.wrong, self.wrong


class Sharded(Reconciler):
    """Notes what it saw once its transaction has committed."""

    name, shard_by = "t.sharded", "node"
    evidence: ClassVar[Evidence]

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        of, evidence = (self.name, key), Sharded.evidence
        with ctx.sql.transaction():
            saw, entered = evidence.wanted[of], evidence.look()
            on_commit(lambda: evidence.commit(of, saw, entered, ctx.lease))
        return SYNC_AGAIN if saw % 5 == 4 and evidence.commits % 2 else DONE


class Single(Sharded):
    name, shard_by = "t.single", "none"


@pytest.fixture(autouse=True)
def _evidence() -> Iterator[None]:
    Sharded.evidence = Evidence()
    with registry.override(ModuleSpec("t", "tests", "t", reconcilers=(Sharded(), Single()))):
        yield
    Sharded.evidence.watcher.close()


def simulation(seed: int) -> Simulation:
    Sharded.evidence.watcher.execute("DELETE FROM compute_work")
    Sharded.evidence.watcher.execute("DELETE FROM compute_workers")
    Sharded.evidence.watcher.execute("UPDATE compute_leases SET holder = NULL, epoch = 0")
    evidence = Sharded.evidence
    fresh = Evidence()
    evidence.watcher.close()
    Sharded.evidence = fresh
    return Simulation(seed, load=fresh.load, check=fresh.check)


@pytest.mark.parametrize("seed", seeds(6, os.environ.get(SEED_VARIABLE)))
def test_no_schedule_loses_a_wake_up_overlaps_or_lets_a_loser_commit(seed: int) -> None:
    schedule = simulation(seed)
    schedule.run(STEPS)
    assert Sharded.evidence.commits > 2
    assert any(mishap in schedule.counts for mishap in MISHAPS)


def found_in(seeds_tried: range) -> SimulationFailed | None:
    for seed in seeds_tried:
        try:
            simulation(seed).run(STEPS)
        except SimulationFailed as failed:
            return failed
    return None


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("generation", "lost wake-ups"),
        ("incarnation", "lost wake-ups"),
        ("lock", "a loser of"),
        ("unique", "a loser of"),
    ],
)
def test_a_rule_left_out_is_found(rule: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (*breaks.FINISHES, *breaks.FENCES, (leases, "ACQUIRE")):
        # Remembers the rule, to put it back.
        monkeypatch.setattr(module, name, getattr(module, name))
    breaks.leave_out(rule)
    if rule in breaks.SCHEMA:
        Sharded.evidence.watcher.execute(breaks.SCHEMA[rule])
    try:
        failed = found_in(range(1, 40))
    finally:
        if rule in breaks.SCHEMA:
            with connection.cursor() as cursor:
                cursor.execute(f"ALTER TABLE compute_leases ADD CONSTRAINT {breaks.UNIQUE_INDEX} UNIQUE (name, epoch)")
    assert failed is not None
    assert found in str(failed)
    assert f"{SEED_VARIABLE}={failed.seed}" in str(failed)


def test_a_seed_replays() -> None:
    first, second = simulation(3), None
    first.run(120)
    second = simulation(3)
    second.run(120)
    assert first.told == second.told
