"""Whoever was answered sees what the answer says, whichever process and connection serves the next call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from django.db import connection

from better_compute.access import Token
from better_compute.devtools.ports import free_port
from better_compute.envelope import tokens
from tests.envelope.conftest import Caller, MakeCaller
from tests.envelope.test_live import _wait_until_it_listens

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES = 3
ROUNDS = 15


@pytest.fixture
def url(app_url: str, broker_url: str) -> Iterator[str]:
    """Three processes that accept on one port, each with a pool of two connections for three threads."""
    port = free_port()
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.envelope.pooled_settings",
        "DATABASE_URL": app_url,
        "CELERY_BROKER_URL": broker_url,
        "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]),
    }
    command = [
        os.path.join(os.path.dirname(sys.executable), "granian"),
        "--interface=wsgi",
        "--host=127.0.0.1",
        f"--port={port}",
        f"--workers={PROCESSES}",
        "--blocking-threads=3",
        "--no-ws",
        "example_project.wsgi:application",
    ]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as server:
        try:
            _wait_until_it_listens(server, port)
            yield f"http://127.0.0.1:{port}/api/compute"
        finally:
            server.terminate()
            server.wait(30)


def call(url: str, caller: Caller, path: str, body: dict[str, object], **headers: str) -> httpx.Response:
    """On a connection of its own, so that any of the processes may take it."""
    found = {"Authorization": f"Bearer {caller.secret}", "Connection": "close", **headers}
    return httpx.post(f"{url}/{path}", json=body, headers=found, timeout=30)


def test_an_answered_call_is_seen_by_the_next_one_whoever_serves_it(url: str, make_caller: MakeCaller) -> None:
    callers = {
        tenant: make_caller(tenant, "compute:acme:poke", "compute:acme:read", name=f"of-{tenant}")
        for tenant in ("t1", "t2", "t3", "t4")
    }

    def writes_and_reads(tenant: str) -> list[int]:
        seen = []
        for number in range(ROUNDS):
            body = {"tenantId": tenant, "widgetId": f"{tenant}-{number}"}
            written = call(url, callers[tenant], "plugins/acme/widgets/poke", body)
            assert written.status_code == 200, written.text
            read = call(url, callers[tenant], "plugins/acme/widgets/count", {"tenantId": tenant})
            seen.append(json.loads(read.content)["count"])
        return seen

    with ThreadPoolExecutor(len(callers)) as pool:
        for seen in pool.map(writes_and_reads, callers):
            assert seen == list(range(1, ROUNDS + 1))
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT pid) FROM compute_processes WHERE role = 'api'")
        assert cursor.fetchone() == (PROCESSES,)


def test_a_token_that_was_revoked_is_good_nowhere_afterwards(url: str, make_caller: MakeCaller) -> None:
    for round in range(5):
        caller = make_caller("t1", "compute:acme:read", name=f"mary-{round}")
        assert {call(url, caller, "plugins/acme/widgets/count", {"tenantId": "t1"}).status_code for _ in range(6)} == {
            200
        }
        tokens.revoke(Token.objects.latest("created_at").pk)
        assert {call(url, caller, "plugins/acme/widgets/count", {"tenantId": "t1"}).status_code for _ in range(6)} == {
            401
        }


def test_a_repeated_call_is_replayed_by_whichever_process_meets_it(url: str, make_caller: MakeCaller) -> None:
    caller = make_caller("t1", "compute:acme:poke", "compute:acme:read", name="mary")
    body: dict[str, object] = {"tenantId": "t1", "widgetId": "w1"}
    answers = [
        call(url, caller, "plugins/acme/widgets/poke", body, **{"Idempotency-Key": "k1"}) for _ in range(3 * PROCESSES)
    ]
    assert [each.status_code for each in answers] == [200] * len(answers)
    assert ["Idempotency-Replayed" in each.headers for each in answers] == [False, *[True] * (len(answers) - 1)]
    assert call(url, caller, "plugins/acme/widgets/count", {"tenantId": "t1"}).json() == {"count": 1}
