"""The queue's statements: coalescing, claim, finish at incarnation and generation, retry, periodic."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from better_compute.store import claims, ends, leases, members, periodic, work
from better_compute.store.claims import NO_FLOOR, Claimed, Look
from better_compute.store.ends import Ended
from better_compute.store.session import connect
from better_compute.store.work import WorkRow
from better_compute.testing import advance_clock

pytestmark = pytest.mark.django_db(transaction=True)

KIND, LEASE, MEMBER = "acme.widgets", "singleton:acme.widgets", "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def cursor() -> Iterator[Any]:
    """A cursor of a member that holds the singleton lease."""
    with connection.cursor() as cursor:
        members.register(cursor, id=MEMBER, role="controllers", host="h", pid=1, ttl_ms=60_000, connections=1, kinds=[])
        leases.ensure(cursor, [LEASE])
        assert leases.acquire(cursor, MEMBER, [LEASE]) == {LEASE: 1}
        yield cursor


def enqueue(cursor: Any, *keys: str, delay_ms: int = 0) -> None:
    work.upsert(cursor, [WorkRow(KIND, key, -1, delay_ms) for key in keys])


def claim(cursor: Any, limit: int = 100, running: list[str] | None = None) -> list[Claimed]:
    return claims.claim(cursor, KIND, [-1], running=running or [], limit=limit, per_shard=limit)


def ended(claimed: Claimed, *, epoch: int = 1, wait_ms: int = 0, floor_ms: int = 0, error: str = "") -> Ended:
    return Ended(claimed, LEASE, epoch, wait_ms, floor_ms, error)


def row(cursor: Any, key: str) -> dict[str, Any] | None:
    cursor.execute("SELECT *, not_before <= compute_now() AS due FROM compute_work WHERE key = %s", [key])
    values = cursor.fetchone()
    return None if values is None else dict(zip([column.name for column in cursor.description], values, strict=True))


def field(cursor: Any, key: str, name: str) -> Any:
    found = row(cursor, key)
    assert found is not None
    return found[name]


class TestEnqueue:
    def test_it_coalesces_and_bumps_the_generation(self, cursor: Any) -> None:
        enqueue(cursor, "a", "a")
        enqueue(cursor, "a")
        assert [(each.key, each.generation) for each in claim(cursor)] == [("a", 2)]

    def test_the_sooner_of_two_delays_wins(self, cursor: Any) -> None:
        enqueue(cursor, "a", delay_ms=60_000)
        enqueue(cursor, "a", delay_ms=120_000)
        assert claim(cursor) == []
        enqueue(cursor, "a")
        assert [each.key for each in claim(cursor)] == ["a"]

    def test_keys_of_any_script_come_back_as_they_were(self, cursor: Any) -> None:
        keys = ["é" * 512, "\U0001f980" * 512, "a b\tc\nd", "'\"\\%s", "ﬁ", "fi"]
        enqueue(cursor, *keys)
        assert sorted(each.key for each in claim(cursor)) == sorted(keys)

    def test_a_bump_of_a_due_key_touches_no_index(self, cursor: Any) -> None:
        with transaction.atomic():
            for _ in range(21):
                enqueue(cursor, "a")
            cursor.execute(
                "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'compute_work'"
            )
            assert cursor.fetchone() == (20, 20)

    def test_unsorted_bulk_enqueues_do_not_deadlock(self, cursor: Any) -> None:
        keys = [f"k{number}" for number in range(200)]
        failures: list[BaseException] = []
        barrier = Barrier(6)

        def write(seed: int) -> None:
            shuffled = random.Random(seed).sample(keys, len(keys))  # noqa: S311
            try:
                with connect("default", "test", {}) as other, other.cursor() as cursor:
                    barrier.wait()
                    for _ in range(15):
                        work.upsert(cursor, [WorkRow(KIND, key, -1) for key in shuffled])
            except BaseException as error:
                failures.append(error)

        threads = [Thread(target=write, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert {each.generation for each in claim(cursor, 1_000)} == {90}

    def test_ids_outlive_32_bits(self, cursor: Any) -> None:
        cursor.execute("SELECT setval(pg_get_serial_sequence('compute_work', 'id'), 2147483648)")
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        assert claimed.id > 2**31
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)]) == {"a"}


class TestClaim:
    def test_it_leaves_what_runs_and_what_is_not_due(self, cursor: Any) -> None:
        enqueue(cursor, "a", "b")
        enqueue(cursor, "late", delay_ms=1_000)
        assert [each.key for each in claim(cursor, running=["a"])] == ["b"]

    def test_a_hot_shard_does_not_starve_the_others(self, cursor: Any) -> None:
        work.upsert(cursor, [WorkRow("n", f"hot{number}", 1) for number in range(50)])
        work.upsert(cursor, [WorkRow("n", "cold", 2)])
        found = claims.claim(cursor, "n", [1, 2], running=[], limit=10, per_shard=5)
        assert "cold" in {each.key for each in found}

    def test_it_uses_the_index_however_many_keys_are_parked(self, cursor: Any) -> None:
        cursor.execute(
            "INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at) "
            "SELECT 'n', 'k' || i, i % 256, compute_now() + interval '1 day', compute_now() "
            "FROM generate_series(1, 20000) i"
        )
        work.upsert(cursor, [WorkRow("n", "due", 7)])
        cursor.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + claims.CLAIM,
            claims.parameters(Look("n", range(256), [NO_FLOOR] * 256, (), 100, 13)),
        )
        [plan] = cursor.fetchone()[0]
        assert plan["Plan"]["Actual Rows"] == 1
        assert plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] < 256 * 6


class TestFinish:
    def test_done_deletes(self, cursor: Any) -> None:
        enqueue(cursor, "a", "b")
        claims = claim(cursor)
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(each) for each in claims]) == {"a", "b"}
        assert claim(cursor) == []

    def test_done_keeps_a_key_dirtied_while_it_ran(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        enqueue(cursor, "a")
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)]) == set()
        assert [each.generation for each in claim(cursor)] == [2]

    def test_a_late_finish_does_not_delete_a_later_incarnation(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)]) == {"a"}
        enqueue(cursor, "a")
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)]) == set()
        assert ends.finish_failed(cursor, MEMBER, KIND, [ended(claimed, wait_ms=1, error="x")]) == set()
        assert ends.finish_stay(cursor, MEMBER, KIND, [ended(claimed)]) == set()
        assert field(cursor, "a", "attempts") == 0

    def test_nothing_is_finished_at_another_epoch(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(claimed, epoch=2)]) == set()
        assert ends.finish_done(cursor, "another", KIND, [ended(claimed)]) == set()

    def test_nothing_is_finished_after_the_members_end(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        advance_clock(timedelta(minutes=2))
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)]) == set()

    def test_a_row_that_an_enqueuer_holds_is_left_and_not_waited_for(self, cursor: Any) -> None:
        enqueue(cursor, "a", "b")
        claims = claim(cursor)
        with connect("default", "test", {}) as other, other.transaction():
            work.upsert(other.cursor(), [WorkRow(KIND, "a", -1)])
            cursor.execute("SET statement_timeout = '2s'")
            assert ends.finish_done(cursor, MEMBER, KIND, [ended(each) for each in claims]) == {"b"}
        assert [(each.key, each.generation) for each in claim(cursor)] == [("a", 2)]
        cursor.execute("SET statement_timeout = 0")

    def test_an_enqueuer_that_meets_a_delete_under_way_inserts_a_new_incarnation(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        with connect("default", "test", {}) as finisher:
            with finisher.transaction():
                assert ends.finish_done(finisher.cursor(), MEMBER, KIND, [ended(claimed)]) == {"a"}
                thread = Thread(target=_enqueue_elsewhere, args=("a",))
                thread.start()
                _wait_until_blocked(cursor)
            thread.join()
        [again] = claim(cursor)
        assert (again.key, again.generation) == ("a", 1)
        assert again.id != claimed.id

    def test_sync_again_goes_to_the_end_and_forgets_failures(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        [first] = claim(cursor)
        ends.finish_failed(cursor, MEMBER, KIND, [ended(first, wait_ms=0, floor_ms=0, error="x")])
        enqueue(cursor, "b")
        [again] = [each for each in claim(cursor) if each.key == "a"]
        assert ends.finish_stay(cursor, MEMBER, KIND, [ended(again)]) == {"a"}
        assert [each.key for each in claim(cursor)] == ["b", "a"]
        assert [field(cursor, "a", name) for name in ("attempts", "last_error", "retry_floor")] == [0, None, None]

    def test_a_periodic_key_waits_from_the_end_of_its_run(self, cursor: Any) -> None:
        periodic.seed(cursor, [WorkRow(KIND, "p", -1)], {(KIND, "p"): 60_000})
        [claimed] = claim(cursor)
        assert claimed.every_ms == 60_000
        ends.finish_stay(cursor, MEMBER, KIND, [ended(claimed, wait_ms=60_000)])
        assert claim(cursor) == []
        cursor.execute("UPDATE compute_workers SET expires_at = expires_at + interval '1 hour'")
        advance_clock(timedelta(seconds=61))
        assert [each.key for each in claim(cursor)] == ["p"]

    def test_a_periodic_key_enqueued_while_it_ran_runs_at_once(self, cursor: Any) -> None:
        periodic.seed(cursor, [WorkRow(KIND, "p", -1)], {(KIND, "p"): 60_000})
        [claimed] = claim(cursor)
        enqueue(cursor, "p")
        ends.finish_stay(cursor, MEMBER, KIND, [ended(claimed, wait_ms=60_000)])
        assert [each.key for each in claim(cursor)] == ["p"]


class TestPeriodic:
    def test_seeding_again_moves_nothing(self, cursor: Any) -> None:
        every = {(KIND, "p"): 60_000}
        periodic.seed(cursor, [WorkRow(KIND, "p", -1)], every)
        [claimed] = claim(cursor)
        ends.finish_stay(cursor, MEMBER, KIND, [ended(claimed, wait_ms=60_000)])
        before = row(cursor, "p")
        periodic.seed(cursor, [WorkRow(KIND, "p", -1)], every)
        after = row(cursor, "p")
        assert before is not None
        assert after is not None
        assert (before["not_before"], before["generation"]) == (after["not_before"], after["generation"])

    def test_a_changed_interval_and_a_dropped_key_are_taken_over(self, cursor: Any) -> None:
        rows = [WorkRow(KIND, "p", -1), WorkRow(KIND, "q", -1)]
        periodic.seed(cursor, rows, {(KIND, "p"): 60_000, (KIND, "q"): 60_000})
        periodic.seed(cursor, rows[:1], {(KIND, "p"): 5_000})
        periodic.drop(cursor, [KIND], rows[:1])
        assert field(cursor, "p", "every_ms") == 5_000
        assert field(cursor, "q", "every_ms") is None

    def test_a_key_that_a_live_member_declares_is_not_dropped(self, cursor: Any) -> None:
        other = "00000000-0000-0000-0000-000000000002"
        kinds = [periodic.declared(KIND, "p")]
        members.register(
            cursor, id=other, role="controllers", host="h", pid=2, ttl_ms=9_000, connections=1, kinds=kinds
        )
        periodic.seed(cursor, [WorkRow(KIND, "p", -1)], {(KIND, "p"): 60_000})
        periodic.drop(cursor, [KIND], [])
        assert field(cursor, "p", "every_ms") == 60_000
        members.leave(cursor, other)
        periodic.drop(cursor, [KIND], [])
        assert field(cursor, "p", "every_ms") is None

    def test_a_key_declared_periodic_while_it_ran_stays(self, cursor: Any) -> None:
        enqueue(cursor, "p")
        [claimed] = claim(cursor)
        periodic.seed(cursor, [WorkRow(KIND, "p", -1)], {(KIND, "p"): 60_000})
        assert ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)]) == set()
        assert field(cursor, "p", "every_ms") == 60_000

    def test_seeding_does_not_wait_for_an_open_transaction(self, cursor: Any) -> None:
        enqueue(cursor, "p")
        with connect("default", "test", {}) as host, host.transaction():
            work.upsert(host.cursor(), [WorkRow(KIND, "p", -1)])
            cursor.execute("SET statement_timeout = '2s'")
            periodic.seed(cursor, [WorkRow(KIND, "p", -1)], {(KIND, "p"): 60_000})
            cursor.execute("RESET statement_timeout")

    def test_keys_of_reconcilers_hosted_elsewhere_are_left_alone(self, cursor: Any) -> None:
        periodic.seed(cursor, [WorkRow(KIND, "p", -1)], {(KIND, "p"): 60_000})
        periodic.drop(cursor, ["other"], [])
        assert field(cursor, "p", "every_ms") == 60_000


class TestFailure:
    def fail(self, cursor: Any, key: str, wait_ms: int, floor_ms: int, error: str = "no") -> None:
        [claimed] = [each for each in claim(cursor) if each.key == key]
        ends.finish_failed(cursor, MEMBER, KIND, [ended(claimed, wait_ms=wait_ms, floor_ms=floor_ms, error=error)])

    def test_it_is_kept_with_its_error_and_waits(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        self.fail(cursor, "a", 60_000, 30_000, "ValueError: no")
        assert claim(cursor) == []
        assert (field(cursor, "a", "attempts"), field(cursor, "a", "last_error")) == (1, "ValueError: no")

    def test_no_enqueue_pulls_it_below_its_floor(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        self.fail(cursor, "a", 60_000, 30_000)
        enqueue(cursor, "a")
        assert claim(cursor) == []
        wait = field(cursor, "a", "not_before") - field(cursor, "a", "last_error_at")
        assert wait == timedelta(seconds=30)

    def test_resync_does_not_defeat_its_backoff(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        self.fail(cursor, "a", 60_000, 30_000)
        assert work.insert_missing(cursor, [WorkRow(KIND, "a", -1), WorkRow(KIND, "b", -1)]) == 1
        assert [each.key for each in claim(cursor)] == ["b"]

    def test_one_enqueued_while_it_failed_waits_only_for_its_floor(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        enqueue(cursor, "a")
        ends.finish_failed(cursor, MEMBER, KIND, [ended(claimed, wait_ms=900_000, floor_ms=30_000, error="no")])
        wait = field(cursor, "a", "not_before") - field(cursor, "a", "last_error_at")
        assert wait == timedelta(seconds=30)

    def test_retry_now_forgets_the_floor_and_keeps_the_count(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        self.fail(cursor, "a", 60_000, 30_000)
        assert work.requeue(cursor, KIND, "a") == -1
        assert [(each.key, each.attempts) for each in claim(cursor)] == [("a", 1)]
        assert work.requeue(cursor, KIND, "absent") is None

    @pytest.mark.parametrize(
        ("text", "stored"),
        [
            ("a\x00b", "ab"),
            ("\ud800", "?"),
            ("é" * 4_000, "é" * 2_046 + "…"),
            ("x" * 4_096, "x" * 4_096),
        ],
    )
    def test_its_error_is_made_storable(self, cursor: Any, text: str, stored: str) -> None:
        enqueue(cursor, "a")
        self.fail(cursor, "a", 1, 1, text)
        assert field(cursor, "a", "last_error") == stored
        assert len(stored.encode()) <= ends.MAX_ERROR_BYTES


class TestSeen:
    def test_next_due_is_the_earliest_that_waits(self, cursor: Any) -> None:
        assert work.next_due(cursor, [KIND], [-1]) is None
        enqueue(cursor, "a", delay_ms=50_000)
        enqueue(cursor, "b", delay_ms=5_000)
        wait = work.next_due(cursor, [KIND], [-1])
        assert wait is not None
        assert timedelta(seconds=4) < wait <= timedelta(seconds=5)


def _enqueue_elsewhere(key: str) -> None:
    with connect("default", "test", {}) as other:
        work.upsert(other.cursor(), [WorkRow(KIND, key, -1)])


def _wait_until_blocked(cursor: Any) -> None:
    while True:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
        )
        if cursor.fetchone()[0]:
            return


class TestAblations:
    """Each rule is needed: without it the harm is done."""

    def finish_without(self, cursor: Any, monkeypatch: pytest.MonkeyPatch, rule: str, claimed: Claimed) -> set[str]:
        assert rule in ends.FINISH_DONE
        monkeypatch.setattr(ends, "FINISH_DONE", ends.FINISH_DONE.replace(rule, ""))
        return ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)])

    def test_without_the_generation_a_wake_up_is_lost(self, cursor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        enqueue(cursor, "a")
        self.finish_without(cursor, monkeypatch, " AND queued.generation = ran.generation", claimed)
        assert claim(cursor) == []

    def test_without_the_incarnation_a_wake_up_is_lost(self, cursor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        enqueue(cursor, "a")
        [claimed] = claim(cursor)
        ends.finish_done(cursor, MEMBER, KIND, [ended(claimed)])
        enqueue(cursor, "a")
        self.finish_without(cursor, monkeypatch, " AND queued.id = ran.id", claimed)
        assert claim(cursor) == []

    def test_unsorted_statements_deadlock(self, cursor: Any) -> None:
        enqueue(cursor, "a", "b")
        barrier = Barrier(2)
        failures: list[type[BaseException]] = []

        def write(keys: list[str]) -> None:
            try:
                with connect("default", "test", {}) as other, other.transaction():
                    work.upsert(other.cursor(), [WorkRow(KIND, keys[0], -1)])
                    barrier.wait()
                    work.upsert(other.cursor(), [WorkRow(KIND, keys[1], -1)])
            except psycopg.Error as error:
                failures.append(type(error))

        threads = [Thread(target=write, args=(keys,)) for keys in (["a", "b"], ["b", "a"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == [psycopg.errors.DeadlockDetected]
