"""What a removed module's reconcilers have left is deleted while workers are at it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from better_compute.store import traces, work
from better_compute.store.session import connect
from tests.engine.conftest import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def waits_for(pid: int) -> bool:
    """Whether a statement waits for a lock that the session ``pid`` holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))", [pid])
        return bool(cursor.fetchone()[0])


def test_a_removal_waits_for_a_fenced_run_that_enqueues_its_own_kind() -> None:
    """Order: the run holds its lease, the removal begins and waits, the run enqueues and commits."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO compute_leases (name) VALUES ('singleton:t.sweep')")
        work.insert_missing(cursor, [work.WorkRow("t.sweep", "k", -1)])

    def remove() -> traces.Traces:
        try:
            with transaction.atomic():
                return traces.forget(connection, ["t.sweep"])
        finally:
            connection.close()

    with connect("default", "run", {}) as run, ThreadPoolExecutor(1) as pool:
        with run.transaction():
            run.execute("SELECT FROM compute_leases WHERE name = 'singleton:t.sweep' FOR KEY SHARE")
            removed = pool.submit(remove)
            eventually(lambda: waits_for(run.info.backend_pid))
            work.upsert(run.cursor(), [work.WorkRow("t.sweep", "k", -1)])
        assert removed.result(10) == traces.Traces(work=1, leases=1, pauses=0)
