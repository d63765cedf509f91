"""The queue's history: one row a minute, by one lease holder, bounded in time and size."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection

from better_compute import compute
from better_compute.store import clock, history
from better_compute.store.history import Depth
from better_compute.testing import advance_clock
from tests.admin import rows

pytestmark = pytest.mark.django_db

SAMPLER = "core.queue-history"


def sample(times: int = 1, *, every: timedelta = timedelta(minutes=1)) -> None:
    for _ in range(times):
        assert compute.jobs[SAMPLER].tick() == 1
        advance_clock(every)


def read(step: timedelta = timedelta(minutes=5), slots: int = 4) -> history.History:
    return history.read(clock.now(), step=step, slots=slots)


def test_a_sample_counts_every_kind_but_the_one_that_samples() -> None:
    rows.work(30, failing_each=10)
    rows.work(600, kind="gone.kind", shard="mod(g, 256)")
    sample(every=timedelta())

    found = read().slots[-1]
    assert found is not None
    # The sample is taken a moment after the rows became due.
    assert 300 <= found["acme.widgets"].oldest_due_s < 330
    assert replace(found["acme.widgets"], oldest_due_s=300) == Depth(
        due=20, future=10, failing=3, oldest_due_s=300, newest=20
    )
    assert (found["gone.kind"].due, found["gone.kind"].future) == (400, 200)
    assert SAMPLER not in found


def test_a_minute_with_an_empty_queue_is_told_from_one_in_which_nobody_looked() -> None:
    sample()
    rows.execute("DELETE FROM compute_work WHERE every_ms IS NULL")
    advance_clock(timedelta(minutes=9))
    sample(every=timedelta())
    rows.execute("UPDATE compute_queue_history SET kinds = '{}', due = '{}', future = '{}', failing = '{}',"
                 " oldest_due_s = '{}'")  # fmt: skip

    assert read().slots == [None, {}, None, {}]


def test_a_slot_shows_its_highest_figures() -> None:
    rows.work(3)
    sample()
    rows.work(300, kind="peak.kind")
    sample()
    rows.execute("DELETE FROM compute_work WHERE kind = 'peak.kind'")
    sample(every=timedelta())

    slots = read(step=timedelta(minutes=10), slots=1).slots
    assert slots[0] is not None
    assert slots[0]["peak.kind"].due == 200
    assert slots[0]["acme.widgets"].due == 2


def test_what_is_due_now_is_the_newest_samples_and_not_the_slots_highest() -> None:
    rows.work(300, kind="peak.kind")
    rows.work(300, kind="rest.kind")
    sample()
    rows.execute("DELETE FROM compute_work WHERE kind = 'peak.kind'")
    sample(every=timedelta())

    [slot] = read(step=timedelta(minutes=10), slots=1).slots
    assert slot is not None
    assert {kind: (slot[kind].due, slot[kind].newest) for kind in ("peak.kind", "rest.kind")} == {
        "peak.kind": (200, 0),
        "rest.kind": (200, 200),
    }


def test_two_days_are_kept() -> None:
    sample()
    advance_clock(history.KEPT)
    sample()

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), bool_and(at > compute_now() - interval '5 minutes') FROM compute_queue_history"
        )
        assert cursor.fetchone() == (1, True)


def test_a_count_stops_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "CAP", 100)
    rows.work(300)
    sample(every=timedelta())

    slot = read().slots[-1]
    assert slot is not None
    assert slot["acme.widgets"].due == 101


def test_41_reconcilers_on_every_shard_are_all_counted() -> None:
    for number in range(41):
        rows.work(256, kind=f"kind-{number:02}", shard="g - 1")
    sample(every=timedelta())

    slot = read().slots[-1]
    assert slot is not None
    assert {kind: depth.due + depth.future for kind, depth in slot.items() if kind.startswith("kind-")} == {
        f"kind-{number:02}": 256 for number in range(41)
    }
