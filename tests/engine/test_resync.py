"""Resync: every key of the member's shards, once in a while, without touching what is queued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import connection

from better_compute import conf, registry
from better_compute.contract.contexts import LeaseInfo, ReconcileContext
from better_compute.contract.extensions import define_port
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, Outcome
from better_compute.contract.reconcilers import Periodic, Reconciler
from better_compute.engine.dispatch import Dispatcher
from better_compute.engine.holds import Hold
from better_compute.engine.keeper import Keeper
from better_compute.engine.membership import Membership
from better_compute.engine.resync import next_in_ms, resync
from better_compute.engine.shards import shard_of
from better_compute.store import periodic, work
from better_compute.store.session import Session

pytestmark = pytest.mark.django_db

NODES = sorted(f"node-{number}" for number in range(1_200))


class Nodes(Reconciler):
    name, shard_by = "t.nodes", "node"

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return DONE


class Fleet:
    """A key source; pages must be asked for in order."""

    def keys(self, shard_by: str, after: str, limit: int) -> Sequence[str]:
        return [node for node in NODES if node > after][:limit]


@pytest.fixture
def member() -> Iterator[Membership]:
    member = Membership("controllers", {"t.nodes": Nodes()})
    for shard in range(128):
        member.holds[f"shard:{shard}"] = Hold(LeaseInfo(f"shard:{shard}", "m", 1), shard)
    served = define_port("key-source", version="1", port=lambda ctx: Fleet())
    with registry.override(ModuleSpec("inventory", "tests", "inventory", extensions=(served,))):
        yield member


def queued(cursor: Any) -> list[tuple[str, bool]]:
    cursor.execute("SELECT key, not_before > compute_now() + interval '50 seconds' FROM compute_work ORDER BY key")
    return list(cursor.fetchall())


def test_it_enqueues_the_keys_of_its_shards_spread_over_the_jitter(member: Membership) -> None:
    mine = [node for node in NODES if shard_of(node) < 128]
    with connection.cursor() as cursor:
        assert resync(cursor, member, spread_ms=100_000) == len(mine)
        rows = queued(cursor)
    assert [key for key, _ in rows] == mine
    assert 0.3 < sum(late for _, late in rows) / len(rows) < 0.7


def test_it_leaves_what_is_queued(member: Membership) -> None:
    [key, *_] = [node for node in NODES if shard_of(node) < 128]
    with connection.cursor() as cursor:
        work.upsert(cursor, [work.WorkRow("t.nodes", key, shard_of(key), delay_ms=900_000)])
        cursor.execute("SELECT generation, not_before FROM compute_work")
        before = cursor.fetchall()
        resync(cursor, member, spread_ms=0)
        cursor.execute("SELECT generation, not_before FROM compute_work WHERE key = %s", [key])
        assert cursor.fetchall() == before


def test_without_a_source_or_a_shard_there_is_nothing_to_do(member: Membership) -> None:
    with connection.cursor() as cursor:
        with registry.override(ModuleSpec("t", "tests", "t")):
            assert resync(cursor, member, spread_ms=0) == 0
        member.holds.clear()
        assert resync(cursor, member, spread_ms=0) == 0


def test_the_interval_has_up_to_as_much_jitter() -> None:
    waits = [next_in_ms(1_000) for _ in range(200)]
    assert 1_000 <= min(waits) < 1_300
    assert 1_700 < max(waits) <= 2_000


class Swept(Reconciler):
    """A release that has one periodic key more than the one before."""

    name = "t.swept"

    def __init__(self, *keys: str) -> None:
        self.periodic = tuple(Periodic(key, every="10m") for key in keys)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        return DONE


def keeper(*keys: str) -> tuple[Keeper, Membership]:
    member = Membership("controllers", {"t.swept": Swept(*keys)})
    settings = conf.Worker()
    dispatcher = Dispatcher([], settings)
    return Keeper([member], dispatcher, Session("default", "t", {}), settings, lambda id: None), member


def intervals(cursor: Any) -> dict[str, int | None]:
    cursor.execute("SELECT key, every_ms FROM compute_work WHERE kind = 't.swept' ORDER BY key")
    return dict(cursor.fetchall())


def test_a_worker_of_the_release_before_takes_no_periodic_key_away() -> None:
    (newer, new), (older, old) = keeper("old", "new"), keeper("old")
    with connection.cursor() as cursor:
        newer.step(cursor, new)
        older.step(cursor, old)
        resync(cursor, old, spread_ms=0)
        assert intervals(cursor) == {"new": 600_000, "old": 600_000}


def test_periodic_keys_are_written_again_when_members_come_or_go() -> None:
    (newer, new), (older, old) = keeper("old", "new"), keeper("old")
    with connection.cursor() as cursor:
        older.step(cursor, old)
        newer.step(cursor, new)
        newer.step(cursor, new)
        cursor.execute("DELETE FROM compute_work")
        newer.step(cursor, new)
        assert intervals(cursor) == {}
        old.leave(cursor)
        newer.step(cursor, new)
        assert intervals(cursor) == {"new": 600_000, "old": 600_000}


def test_resync_writes_periodic_keys_and_drops_those_that_nobody_declares() -> None:
    _, new = keeper("new")
    with connection.cursor() as cursor:
        periodic.seed(cursor, [work.WorkRow("t.swept", "old", -1)], {("t.swept", "old"): 600_000})
        new.join(cursor)
        resync(cursor, new, spread_ms=0)
        assert intervals(cursor) == {"new": 600_000, "old": None}
