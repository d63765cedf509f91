"""One statement that finishes, claims and notes: what it promises beyond the statements it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import connection

from better_compute.store import leases, members, passes, work
from better_compute.store.claims import CRASHED, NO_FLOOR, Claimed, Look
from better_compute.store.ends import Ended
from better_compute.store.passes import Found, Noted
from better_compute.store.session import connect
from better_compute.store.work import WorkRow

pytestmark = pytest.mark.django_db(transaction=True)

KIND, LEASE, MEMBER = "t.kind", "singleton:t.kind", "m"


@pytest.fixture
def cursor() -> Iterator[Any]:
    """A cursor of a member that holds the singleton lease."""
    with connection.cursor() as cursor:
        members.register(cursor, id=MEMBER, role="controllers", host="h", pid=1, ttl_ms=60_000, connections=1, kinds=[])
        leases.ensure(cursor, [LEASE])
        assert leases.acquire(cursor, MEMBER, [LEASE]) == {LEASE: 1}
        yield cursor


def enqueue(cursor: Any, *keys: str, shard: int = -1) -> None:
    work.upsert(cursor, [WorkRow(KIND, key, shard) for key in keys])


def look(
    *running: str, shards: Sequence[int] = (-1,), floors: Sequence[str] | None = None, limit: int = 100, each: int = 100
) -> Look:
    return Look(KIND, shards, floors or [NO_FLOOR] * len(shards), running, limit, each)


def claim(cursor: Any, *running: str, others: Sequence[Noted] = (), **how: Any) -> Found:
    return passes.claim_noted(cursor, MEMBER, look(*running, **how), others)


def ended(claims: Sequence[Claimed], *, epoch: int = 1) -> list[Ended]:
    return [Ended(claimed, LEASE, epoch) for claimed in claims]


def finish(cursor: Any, claims: Sequence[Claimed], *, epoch: int = 1, **how: Any) -> Found:
    wanted = look(*[claimed.key for claimed in claims], **how)
    return passes.finish_and_claim(cursor, MEMBER, ended(claims, epoch=epoch), wanted, [])


def keys(found: Found) -> list[str]:
    return [claimed.key for claimed in found.claimed]


def note(cursor: Any) -> list[dict[str, Any]]:
    cursor.execute("SELECT inflight::text FROM compute_workers WHERE id = %s", [MEMBER])
    import json

    return list(json.loads(cursor.fetchone()[0]))


def wait_until_blocked(cursor: Any) -> None:
    while True:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
        )
        if cursor.fetchone() is not None:
            return


def version_of_the_member(cursor: Any) -> str:
    cursor.execute("SELECT xmin::text FROM compute_workers WHERE id = %s", [MEMBER])
    return str(cursor.fetchone()[0])


class TestClaim:
    def test_what_is_claimed_is_noted_beside_what_others_run(self, cursor: Any) -> None:
        enqueue(cursor, "a", "b")
        found = claim(cursor, others=[Noted("t.other", ["x"], [7])])
        assert keys(found) == ["a", "b"]
        others, mine = note(cursor)
        assert others == {"kind": "t.other", "keys": ["x"], "ids": [7]}
        assert datetime.fromisoformat(mine.pop("since")) == found.at
        assert mine == {"kind": KIND, "keys": ["a", "b"], "ids": [claimed.id for claimed in found.claimed]}

    def test_without_anything_due_nothing_is_written(self, cursor: Any) -> None:
        before = version_of_the_member(cursor)
        assert keys(claim(cursor)) == []
        assert version_of_the_member(cursor) == before

    def test_it_leaves_what_runs(self, cursor: Any) -> None:
        enqueue(cursor, "a", 'quo"ted', "b")
        assert keys(claim(cursor, "a", 'quo"ted')) == ["b"]

    def test_suspects_are_not_noted_with_the_innocent(self, cursor: Any) -> None:
        enqueue(cursor, "a", "bad")
        cursor.execute("UPDATE compute_work SET last_error = %s WHERE key = 'bad'", [CRASHED])
        found = claim(cursor)
        assert not found.noted
        assert note(cursor) == []

    def test_a_floor_hides_what_is_due_before_it(self, cursor: Any) -> None:
        enqueue(cursor, "early", shard=1)
        [early] = claim(cursor, shards=[1]).claimed
        enqueue(cursor, "late", shard=1)
        floor = f'"{early.due_at + timedelta(microseconds=1)}"'
        assert keys(claim(cursor, shards=[1], floors=[floor])) == ["late"]
        assert keys(claim(cursor, shards=[1])) == ["early", "late"]

    def test_floors_count_for_their_own_shard(self, cursor: Any) -> None:
        enqueue(cursor, "a", shard=1)
        enqueue(cursor, "b", shard=2)
        found = claim(cursor, shards=[1, 2], floors=["infinity", NO_FLOOR])
        assert keys(found) == ["b"]


class TestLookedThrough:
    def test_all_of_a_shard_that_ran_dry(self, cursor: Any) -> None:
        enqueue(cursor, "a", shard=1)
        wanted = look(shards=[1, 2], each=5)
        assert passes.claim_noted(cursor, MEMBER, wanted, []).looked_through(wanted) == {1: None, 2: None}

    def test_up_to_the_last_key_of_a_shard_that_was_cut(self, cursor: Any) -> None:
        enqueue(cursor, *"abc", shard=1)
        wanted = look(shards=[1, 2], each=2)
        found = passes.claim_noted(cursor, MEMBER, wanted, [])
        assert found.looked_through(wanted) == {1: found.claimed[-1].due_at, 2: None}

    def test_nothing_of_shards_that_the_limit_cut_off(self, cursor: Any) -> None:
        enqueue(cursor, "a", shard=1)
        enqueue(cursor, *"bcd", shard=2)
        enqueue(cursor, "e", shard=3)
        wanted = look(shards=[1, 2, 3], limit=3)
        found = passes.claim_noted(cursor, MEMBER, wanted, [])
        assert found.looked_through(wanted) == {1: None, 2: found.claimed[-1].due_at}


class TestFinishAndClaim:
    def test_it_deletes_and_claims_the_rest(self, cursor: Any) -> None:
        enqueue(cursor, *"abc")
        first = claim(cursor, limit=2)
        second = finish(cursor, first.claimed)
        assert second.deleted == set(keys(first))
        assert keys(second) == ["c"]
        assert [noted["keys"] for noted in note(cursor)] == [["c"]]

    def test_when_nothing_is_left_the_note_is_cleared(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        assert keys(finish(cursor, claim(cursor).claimed)) == []
        assert note(cursor) == []

    def test_a_key_dirtied_while_it_ran_stays_and_is_not_claimed_yet(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        claims = claim(cursor).claimed
        enqueue(cursor, "a")
        found = finish(cursor, claims)
        assert (found.deleted, keys(found)) == (set(), [])
        assert keys(claim(cursor)) == ["a"]

    def test_a_key_dirtied_between_the_look_and_the_lock_stays(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        claims = claim(cursor).claimed
        found: list[Found] = []

        def finish_elsewhere() -> None:
            with connect("default", "test", {}) as session:
                found.append(finish(session.cursor(), claims))

        thread = Thread(target=finish_elsewhere)
        # The statement has its snapshot, and waits for the lease.
        with connect("default", "test", {}) as holder, holder.transaction():
            holder.execute("SELECT FROM compute_leases WHERE name = %s FOR UPDATE", [LEASE])
            thread.start()
            wait_until_blocked(cursor)
            enqueue(cursor, "a")
        thread.join()
        assert [each.deleted for each in found] == [set()]
        assert keys(claim(cursor)) == ["a"]

    def test_a_row_that_moved_since_it_was_claimed_is_deleted(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        claims = claim(cursor).claimed
        cursor.execute("UPDATE compute_work SET attempts = attempts")
        assert finish(cursor, claims).deleted == {"a"}

    def test_keys_of_any_script_are_told_as_deleted(self, cursor: Any) -> None:
        names = {'quo"ted', "back\\slash", "ключ", "鍵\U0001f511", "line\nbreak"}
        enqueue(cursor, *names)
        assert finish(cursor, claim(cursor).claimed).deleted == names

    def test_a_later_incarnation_stays(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        claims = claim(cursor).claimed
        assert finish(cursor, claims).deleted == {"a"}
        enqueue(cursor, "a")
        assert finish(cursor, claims).deleted == set()

    def test_nothing_is_deleted_at_another_epoch(self, cursor: Any) -> None:
        enqueue(cursor, "a")
        assert finish(cursor, claim(cursor).claimed, epoch=2).deleted == set()
        assert keys(claim(cursor)) == ["a"]

    def test_whoever_buries_the_member_finds_the_suspects(self, cursor: Any) -> None:
        enqueue(cursor, "a", "b")
        finish(cursor, claim(cursor, limit=1).claimed)
        cursor.execute("UPDATE compute_workers SET expires_at = compute_now()")
        assert members.bury(cursor, [], ttl_ms=60_000, beat_ms=1) == [MEMBER]
        cursor.execute("SELECT key, last_error FROM compute_work")
        assert cursor.fetchall() == [("b", CRASHED)]
