"""``/metrics``, ``/livez`` and ``/readyz``: who may see them, and what they say of a real worker."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from better_compute.devtools.ports import free_port
from better_compute.engine.contexts import WorkPort
from better_compute.engine.observing import exposition, probes
from better_compute.store import overview
from better_compute.store.session import answering
from better_compute.store.transaction import transaction
from tests.engine.conftest import Worker, enqueue, eventually, queued

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "a token for monitoring"
LOCAL, FAR = "127.0.0.1", "203.0.113.7"


@pytest.fixture
def observe(settings: Any) -> Callable[..., None]:
    probes._pending.cache_clear()

    def set_to(**values: Any) -> None:
        settings.COMPUTE = {**settings.COMPUTE, "OBSERVE": values}

    return set_to


@pytest.mark.parametrize(
    ("values", "headers", "address", "status"),
    [
        ({}, {}, LOCAL, 401),
        ({}, {"Authorization": "Bearer "}, LOCAL, 401),
        ({"TOKEN": TOKEN}, {}, LOCAL, 401),
        ({"TOKEN": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"}, FAR, 401),
        ({"TOKEN": TOKEN}, {"Authorization": f"Basic {TOKEN}"}, FAR, 401),
        ({"TOKEN": TOKEN}, {"Authorization": f"Bearer {TOKEN}"}, FAR, 200),
        ({"LOOPBACK": True}, {}, LOCAL, 200),
        ({"LOOPBACK": True}, {}, "::1", 200),
        ({"LOOPBACK": True}, {}, FAR, 401),
        ({"LOOPBACK": True}, {}, "", 401),
        ({"LOOPBACK": True}, {"X-Forwarded-For": LOCAL}, LOCAL, 401),
        ({"LOOPBACK": True}, {"Forwarded": f"for={LOCAL}"}, LOCAL, 401),
    ],
)
def test_metrics_are_for_those_who_may_see_them(
    observe: Callable[..., None], values: Any, headers: Any, address: str, status: int
) -> None:
    observe(**values)
    answer = Client().get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert answer.status_code == status
    assert (b"compute_workqueue_depth" in answer.content) is (status == 200)


def test_gauges_of_the_queue_are_asked_at_the_scrape(observe: Callable[..., None]) -> None:
    observe(LOOPBACK=True)
    with transaction():
        WorkPort().enqueue_many("acme.widgets", ["a", "b"])
    text = Client().get("/metrics").content.decode()
    assert 'compute_workqueue_depth{kind="acme.widgets"} 2.0' in text
    assert 'compute_workqueue_adds_total{kind="acme.widgets"}' in text
    assert "compute_workqueue_longest_running_processor_seconds 0.0" in text


def test_a_scrape_costs_a_bounded_number_of_statements(observe: Callable[..., None]) -> None:
    from django.test.utils import CaptureQueriesContext

    observe(LOOPBACK=True)
    with transaction():
        WorkPort().enqueue_many("acme.widgets", [f"key-{number}" for number in range(500)])
    with CaptureQueriesContext(connection) as asked:
        exposition.page()
    assert len(asked) <= 7


def test_a_database_that_does_not_answer_leaves_the_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    from better_compute.store import overview

    monkeypatch.setattr(overview, "STATEMENT_TIMEOUT_MS", 50)
    monkeypatch.setattr(overview, "DEPTH", "SELECT pg_sleep(5), %(cap)s::int, 0, 0, NULL")
    text = exposition.page()[1].decode()
    assert "compute_lease_transitions_total" in text
    assert "compute_workqueue_depth" not in text
    assert "compute_scrape_errors_total" in text


def test_readyz_answers_although_the_database_stands_still(
    observe: Callable[..., None], freeze: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    observe(LOOPBACK=True)
    monkeypatch.setattr(overview, "STATEMENT_TIMEOUT_MS", 200)
    connection.ensure_connection()
    freeze(connection.connection.info.backend_pid)
    began = monotonic()
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["ready"], monotonic() - began < 5) == (503, False, True)
    answer = Client().get("/readyz")
    assert answer.json() == {"ready": True, "problems": {}}


def test_opening_a_connection_has_the_deadline_of_what_is_asked_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        copy = connection.copy()
        copy.settings_dict = {**copy.settings_dict, "HOST": "127.0.0.1", "PORT": deaf.getsockname()[1]}
        began = monotonic()
        with pytest.raises(OperationalError), answering(copy, 2):
            pass
        assert monotonic() - began < 10
    with connection.cursor():
        before = dict(vars(connection.connection)), connection.get_connection_params
        with answering(connection, 2):
            assert vars(connection.connection)["wait"]
        assert (dict(vars(connection.connection)), connection.get_connection_params) == before


def test_everybody_hears_whether_a_process_lives_and_is_ready_and_no_more(observe: Callable[..., None]) -> None:
    observe()
    assert Client().get("/livez").content == b"ok\n"
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert Client().post("/readyz").status_code == 405


def test_a_pending_migration_keeps_a_process_from_being_ready(observe: Callable[..., None]) -> None:
    observe(LOOPBACK=True)
    with connection.cursor() as cursor:
        # As if a release with one more migration had been installed.
        cursor.execute("UPDATE django_migrations SET app = 'plg_acme_away' WHERE app = 'plg_acme'")
        cursor.execute("ALTER TABLE compute_migrations RENAME TO compute_migrations_away")
    try:
        answer = Client().get("/readyz")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE compute_migrations_away RENAME TO compute_migrations")
            cursor.execute("UPDATE django_migrations SET app = 'plg_acme' WHERE app = 'plg_acme_away'")
    assert answer.status_code == 503
    assert list(answer.json()["problems"]) == ["migrations"]


def fetch(port: int, path: str, token: str = "") -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"} if token else {}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - our own worker
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def test_a_worker_says_on_its_own_port_how_it_is(start_worker: Callable[..., Worker]) -> None:
    port = free_port()
    worker = start_worker(PLANT_OBSERVE_PORT=str(port))
    eventually(lambda: fetch(port, "/readyz")[0] == 200, 40)
    assert fetch(port, "/livez") == (200, "ok\n")
    assert fetch(port, "/admin/")[0] == 404
    assert fetch(port, "/metrics")[0] == 401
    eventually(lambda: worker.holds(), 40)
    enqueue("plant.marks", "one", "two")
    eventually(lambda: not queued("plant.marks"), 40)
    token = "t" * 32
    ran = 'compute_runs_total{kind="plant.marks"} 2.0'
    eventually(lambda: ran in fetch(port, "/metrics", token)[1], 40)
    text = fetch(port, "/metrics", token)[1]
    assert "compute_listener_up 1.0" in text
    assert 'compute_workqueue_work_duration_seconds_count{kind="plant.marks"} 2.0' in text
    assert 'compute_workqueue_queue_duration_seconds_count{kind="plant.marks"} 2.0' in text
    assert 'compute_leases_held{role="controllers"}' in text
    worker.terminate()
    assert worker.wait(30) == 0
    assert fetch(port, "/livez")[0] == 0
