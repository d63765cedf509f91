"""Members, leases and the fence, raced on real connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Thread
from typing import Any

import psycopg
import pytest
from django.db import connection

from better_compute.contract.contexts import LeaseInfo
from better_compute.contract.errors import LeaseLost
from better_compute.store import fence, leases, members, work
from better_compute.store.claims import CRASHED
from better_compute.store.passes import Noted
from better_compute.store.session import connect
from better_compute.store.work import WorkRow
from better_compute.testing import advance_clock

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = "shard:7"
TTL_MS, BEAT_MS = 10_000, 2_200


@pytest.fixture
def cursor() -> Iterator[Any]:
    with connection.cursor() as cursor:
        leases.ensure(cursor, [LEASE, "shard:8"])
        yield cursor


@contextmanager
def elsewhere() -> Iterator[psycopg.Connection[Any]]:
    """Another connection, autocommit."""
    with connect("default", "test", {"statement_timeout": "10s"}) as other:
        yield other


def join(cursor: Any, id: str, kinds: tuple[str, ...] = ()) -> None:
    members.register(cursor, id=id, role="controllers", host="h", pid=1, ttl_ms=TTL_MS, connections=1, kinds=kinds)


def bury(cursor: Any, id: str) -> list[str]:
    return members.bury(cursor, [id], ttl_ms=TTL_MS, beat_ms=BEAT_MS)


def holder(cursor: Any) -> tuple[str, int] | None:
    return leases.held(cursor).get(LEASE)


class TestLeases:
    def test_a_free_lease_is_taken_once(self, cursor: Any) -> None:
        join(cursor, "a")
        join(cursor, "b")
        assert leases.acquire(cursor, "a", [LEASE]) == {LEASE: 1}
        assert leases.acquire(cursor, "b", [LEASE]) == {}

    def test_giving_back_and_taking_each_raise_the_epoch(self, cursor: Any) -> None:
        join(cursor, "a")
        join(cursor, "b")
        leases.acquire(cursor, "a", [LEASE])
        assert leases.release(cursor, "a", [LEASE]) == {LEASE}
        assert leases.acquire(cursor, "b", [LEASE]) == {LEASE: 3}

    def test_another_members_lease_cannot_be_given_back(self, cursor: Any) -> None:
        join(cursor, "a")
        leases.acquire(cursor, "a", [LEASE])
        assert leases.release(cursor, "b", [LEASE]) == set()
        assert holder(cursor) == ("a", 1)

    def test_a_dead_member_takes_nothing(self, cursor: Any) -> None:
        join(cursor, "a")
        advance_clock(timedelta(seconds=11))
        assert leases.acquire(cursor, "a", [LEASE]) == {}

    def test_a_renewal_after_the_end_is_refused(self, cursor: Any) -> None:
        join(cursor, "a")
        assert members.renew(cursor, "a", TTL_MS)
        advance_clock(timedelta(seconds=11))
        assert not members.renew(cursor, "a", TTL_MS)

    def test_leases_of_a_member_whose_row_was_deleted_by_hand_are_free(self, cursor: Any) -> None:
        join(cursor, "a")
        join(cursor, "b")
        leases.acquire(cursor, "a", [LEASE])
        cursor.execute("DELETE FROM compute_workers WHERE id = 'a'")
        assert leases.acquire(cursor, "b", [LEASE]) == {LEASE: 2}


class TestBurial:
    def test_a_member_past_its_end_is_buried_and_its_leases_are_free(self, cursor: Any) -> None:
        join(cursor, "a")
        leases.acquire(cursor, "a", [LEASE])
        advance_clock(timedelta(seconds=11))
        join(cursor, "b")
        assert leases.acquire(cursor, "b", [LEASE]) == {}
        assert bury(cursor, "b") == ["a"]
        assert leases.acquire(cursor, "b", [LEASE]) == {LEASE: 2}

    def test_one_beat_late_with_its_connection_gone_is_dead(self, cursor: Any) -> None:
        with elsewhere() as other:
            join(other.cursor(), "a")
        join(cursor, "b")
        assert bury(cursor, "b") == []
        advance_clock(timedelta(seconds=3))
        assert members.renew(cursor, "b", TTL_MS)
        assert bury(cursor, "b") == ["a"]

    def test_one_beat_late_with_its_connection_open_is_alive(self, cursor: Any) -> None:
        with elsewhere() as other:
            join(other.cursor(), "a")
            join(cursor, "b")
            advance_clock(timedelta(seconds=3))
            assert bury(cursor, "b") == []

    def test_a_member_that_is_renewing_is_not_buried(self, cursor: Any) -> None:
        join(cursor, "a")
        join(cursor, "b")
        with elsewhere() as other, other.transaction():
            members.renew(other.cursor(), "a", TTL_MS)
            advance_clock(timedelta(seconds=11))
            assert bury(cursor, "b") == []

    def test_the_keys_it_ran_become_suspects(self, cursor: Any) -> None:
        work.upsert(cursor, [WorkRow("n", key, 7) for key in ("ran", "waits", "again")])
        cursor.execute("SELECT key, id FROM compute_work")
        ids = dict(cursor.fetchall())
        join(cursor, "a")
        members.note_running(cursor, "a", [Noted("n", ["ran", "again"], [ids["ran"], ids["again"] - 1_000])])
        advance_clock(timedelta(seconds=11))
        join(cursor, "b")
        assert bury(cursor, "b") == ["a"]
        # How long it waits is counted from its burial: the question may come when it is due already.
        cursor.execute(
            "SELECT key, attempts, last_error, not_before - last_error_at BETWEEN '500 ms' AND '1 s'"
            " FROM compute_work ORDER BY key"
        )
        assert cursor.fetchall() == [("again", 0, None, None), ("ran", 1, CRASHED, True), ("waits", 0, None, None)]

    @pytest.mark.parametrize(
        "note",
        [
            "null",
            "7",
            '"n"',
            "{}",
            '[null, 7, [], "n"]',
            '{"kind": "n", "keys": "ran", "ids": "1"}',
            '[{"kind": "n"}, {"keys": ["ran"]}, {"kind": {"name": "n"}, "keys": ["ran"], "ids": [1]}]',
            '[{"kind": "n", "keys": {"ran": 1}, "ids": {"ran": 1}}]',
            '[{"kind": "n", "keys": ["ran", 5, null, {}], "ids": ["one", 1.5, 99999999999999999999999, null, {}]}]',
            '[{"kind": "n", "runs": [{"key": "ran", "id": 1, "since": "then"}]}]',
        ],
    )
    def test_a_note_of_another_shape_keeps_nobody_from_being_buried(self, cursor: Any, note: str) -> None:
        work.upsert(cursor, [WorkRow("n", "ran", 7), WorkRow("n", "known", 7)])
        cursor.execute("SELECT id FROM compute_work WHERE key = 'known'")
        [(known,)] = cursor.fetchall()
        for id in ("a", "b"):
            join(cursor, id)
        members.note_running(cursor, "b", [Noted("n", ["known"], [known])])
        cursor.execute("UPDATE compute_workers SET inflight = %s::jsonb WHERE id = 'a'", [note])
        advance_clock(timedelta(seconds=11))
        join(cursor, "c")
        assert bury(cursor, "c") == ["a", "b"]
        cursor.execute("SELECT key, last_error FROM compute_work ORDER BY key")
        assert cursor.fetchall() == [("known", CRASHED), ("ran", None)]

    def test_what_can_be_read_of_a_longer_note_makes_suspects(self, cursor: Any) -> None:
        work.upsert(cursor, [WorkRow("n", "ran", 7)])
        cursor.execute("SELECT id FROM compute_work")
        [(ran,)] = cursor.fetchall()
        join(cursor, "a")
        cursor.execute(
            "UPDATE compute_workers SET inflight = jsonb_build_array(7, jsonb_build_object("
            "'kind', 'n', 'keys', jsonb_build_array('ran'), 'ids', jsonb_build_array(%s::bigint), 'since', 'then'))",
            [ran],
        )
        advance_clock(timedelta(seconds=11))
        join(cursor, "b")
        assert bury(cursor, "b") == ["a"]
        cursor.execute("SELECT last_error FROM compute_work")
        assert cursor.fetchall() == [(CRASHED,)]

    def test_a_member_that_leaves_makes_no_suspects(self, cursor: Any) -> None:
        work.upsert(cursor, [WorkRow("n", "ran", 7)])
        cursor.execute("SELECT id FROM compute_work")
        [(id,)] = cursor.fetchall()
        join(cursor, "a")
        members.note_running(cursor, "a", [Noted("n", ["ran"], [id])])
        members.leave(cursor, "a")
        join(cursor, "b")
        assert bury(cursor, "b") == []
        cursor.execute("SELECT attempts FROM compute_work")
        assert cursor.fetchall() == [(0,)]


class TestFence:
    @pytest.fixture
    def lease(self, cursor: Any) -> LeaseInfo:
        join(cursor, "a")
        join(cursor, "b")
        leases.acquire(cursor, "a", [LEASE])
        return LeaseInfo(LEASE, "a", 1)

    def test_it_passes_while_held(self, cursor: Any, lease: LeaseInfo) -> None:
        fence.require(cursor, lease)

    @pytest.mark.parametrize("lost", [LeaseInfo(LEASE, "a", 2), LeaseInfo(LEASE, "b", 1), LeaseInfo("shard:8", "a", 1)])
    def test_it_refuses_another_name_holder_or_epoch(self, cursor: Any, lease: LeaseInfo, lost: LeaseInfo) -> None:
        with pytest.raises(LeaseLost, match="is no longer held by"):
            fence.require(cursor, lost)

    def test_it_refuses_after_the_members_end(self, cursor: Any, lease: LeaseInfo) -> None:
        advance_clock(timedelta(seconds=11))
        with pytest.raises(LeaseLost):
            fence.require(cursor, lease)

    def test_several_leases_are_fenced_all_or_none(self, cursor: Any, lease: LeaseInfo) -> None:
        leases.acquire(cursor, "a", ["shard:8"])
        both = [lease, LeaseInfo("shard:8", "a", 1)]
        fence.require_all(cursor, both)
        leases.release(cursor, "a", ["shard:8"])
        with pytest.raises(LeaseLost):
            fence.require_all(cursor, both)

    def test_an_open_fence_does_not_delay_renewal(self, cursor: Any, lease: LeaseInfo) -> None:
        with elsewhere() as run, run.transaction():
            fence.require(run.cursor(), lease)
            cursor.execute("SET statement_timeout = '2s'")
            assert members.renew(cursor, "a", TTL_MS)
        cursor.execute("SET statement_timeout = 0")

    def test_a_lease_with_an_open_fence_is_not_taken_even_from_the_dead(self, cursor: Any, lease: LeaseInfo) -> None:
        with elsewhere() as run, run.transaction():
            fence.require(run.cursor(), lease)
            cursor.execute("DELETE FROM compute_workers WHERE id = 'a'")
            assert leases.acquire(cursor, "b", [LEASE]) == {}
        assert leases.acquire(cursor, "b", [LEASE]) == {LEASE: 2}

    def test_a_fence_that_meets_a_takeover_under_way_waits_and_refuses(self, cursor: Any, lease: LeaseInfo) -> None:
        outcome: list[str] = []

        def run() -> None:
            with elsewhere() as other, other.transaction():
                try:
                    fence.require(other.cursor(), lease)
                    outcome.append("passed")
                except LeaseLost:
                    outcome.append("lost")

        with elsewhere() as taker:
            with taker.transaction():
                taker.execute("DELETE FROM compute_workers WHERE id = 'a'")
                assert leases.acquire(taker.cursor(), "b", [LEASE]) == {LEASE: 2}
                thread = Thread(target=run)
                thread.start()
                blocked(cursor)
                assert outcome == []
            thread.join()
        assert outcome == ["lost"]

    def test_the_loser_cannot_commit_a_write(self, cursor: Any, lease: LeaseInfo) -> None:
        """The holder pauses before its fence; meanwhile the lease is taken and served."""
        cursor.execute("DELETE FROM compute_workers WHERE id = 'a'")
        leases.acquire(cursor, "b", [LEASE])
        with elsewhere() as run, pytest.raises(LeaseLost), run.transaction():
            fence.require(run.cursor(), lease)
            work.upsert(run.cursor(), [WorkRow("n", "written", 7)])
        cursor.execute("SELECT count(*) FROM compute_work")
        assert cursor.fetchall() == [(0,)]


def blocked(cursor: Any) -> None:
    """Wait until somebody waits for a lock."""
    while True:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
        )
        if cursor.fetchone()[0]:
            return


class TestAblations:
    """Without a rule, two members are inside a fenced transaction of one lease at the same time."""

    @pytest.fixture
    def lease(self, cursor: Any) -> LeaseInfo:
        join(cursor, "a")
        join(cursor, "b")
        leases.acquire(cursor, "a", [LEASE])
        return LeaseInfo(LEASE, "a", 1)

    def overlap(self, cursor: Any, lease: LeaseInfo) -> bool:
        """Whether b gets the lease, and into its own fence, while a is inside its own."""
        with elsewhere() as run, run.transaction():
            fence.require(run.cursor(), lease)
            cursor.execute("DELETE FROM compute_workers WHERE id = 'a'")
            taken = leases.acquire(cursor, "b", [LEASE])
            if not taken:
                return False
            fence.require(cursor, LeaseInfo(LEASE, "b", taken[LEASE]))
            return True

    def test_with_every_rule_there_is_no_overlap(self, cursor: Any, lease: LeaseInfo) -> None:
        assert not self.overlap(cursor, lease)

    def test_without_the_row_lock_they_overlap(
        self, cursor: Any, lease: LeaseInfo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fence, "ONE", fence.ONE.replace("FOR KEY SHARE OF lease", ""))
        assert self.overlap(cursor, lease)

    def test_without_the_unique_index_a_weaker_takeover_overlaps(
        self, cursor: Any, lease: LeaseInfo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        weaker = leases.ACQUIRE.replace("FOR UPDATE OF lease", "FOR NO KEY UPDATE OF lease")
        monkeypatch.setattr(leases, "ACQUIRE", weaker)
        cursor.execute("ALTER TABLE compute_leases DROP CONSTRAINT compute_leases_name_epoch_key")
        try:
            assert self.overlap(cursor, lease)
        finally:
            cursor.execute("ALTER TABLE compute_leases ADD UNIQUE (name, epoch)")

    def test_with_the_unique_index_even_a_weaker_takeover_waits(
        self, cursor: Any, lease: LeaseInfo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        weaker = leases.ACQUIRE.replace("FOR UPDATE OF lease", "FOR NO KEY UPDATE OF lease")
        monkeypatch.setattr(leases, "ACQUIRE", weaker)
        cursor.execute("SET statement_timeout = '300ms'")
        try:
            with pytest.raises(Exception, match="statement timeout"):
                self.overlap(cursor, lease)
        finally:
            cursor.execute("SET statement_timeout = 0")
