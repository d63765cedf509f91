"""What is counted for operators is read to its cap and no further, however long the queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from better_compute.store import health, history, overview
from tests.admin import rows

pytestmark = pytest.mark.django_db(transaction=True)

CAP = 1_000
#: Of every kind, ten times what may be read of it.
QUEUED = 20_000
SHARDS = 64


@pytest.fixture
def long_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (overview, health, history):
        monkeypatch.setattr(module, "CAP", CAP)
    for kind, shard in (("one", "-1"), ("two", f"mod(g, {SHARDS})")):
        rows.work(QUEUED, kind=kind, shard=shard, failing_each=2)
    rows.execute("ANALYZE compute_work")


def read(plan: dict[str, Any]) -> Iterator[int]:
    """How many rows or index entries each node of a plan took from the work table."""
    if plan.get("Relation Name") == "compute_work" or plan["Node Type"] == "Bitmap Index Scan":
        removed = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        yield round((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    for inner in plan.get("Plans", ()):
        yield from read(inner)


def rows_read(ask: Callable[[], object], statement: str) -> int:
    """What the statement that begins with ``statement`` reads of the work table when ``ask`` makes it."""
    with transaction.atomic():
        with CaptureQueriesContext(connection) as captured:
            ask()
        [sql] = [each["sql"] for each in captured if each["sql"].lstrip().startswith(statement)]
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql.replace("%", "%%"), [])
            [(answer,)] = cursor.fetchall()
    [plan] = json.loads(answer) if isinstance(answer, str) else answer
    return sum(read(plan["Plan"]))


#: Of two kinds the due and the waiting keys, of all the failing ones, and an entry for each queue and its oldest.
DEPTH_READS = 5 * (CAP + 1) + 3 * (SHARDS + 1)


@pytest.mark.parametrize(
    ("ask", "statement", "most"),
    [
        (overview.depth, "WITH RECURSIVE", DEPTH_READS),
        (lambda: history.record("own"), "INSERT INTO compute_queue_history", DEPTH_READS),
        (lambda: health.stuck("default"), "SELECT kind, count(*)", CAP),
    ],
)
def test_long_queues_are_read_to_the_cap(
    long_queues: None, ask: Callable[[], object], statement: str, most: int
) -> None:
    assert 0 < rows_read(ask, statement) <= most


def test_a_bitmap_reads_a_queue_to_its_end(long_queues: None, monkeypatch: pytest.MonkeyPatch) -> None:
    bitmaps = "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off"
    monkeypatch.setattr(overview, "BY_INDEX", bitmaps)
    assert rows_read(overview.depth, "WITH RECURSIVE") > 2 * DEPTH_READS


def test_a_kind_is_counted_over_all_its_shards() -> None:
    rows.work(60, kind="one")
    rows.work(90, kind="two", shard="mod(g, 7)", failing_each=9)
    with overview.bounded():
        one, two = overview.depth()
    assert (one.kind, one.due, one.future, one.failing) == ("one", 40, 20, 0)
    assert (two.kind, two.due, two.future, two.failing) == ("two", 60, 30, 10)
    assert one.oldest_due_at is not None
