"""The generated Python client calls every method, and says what the server says."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from django.db import connection

from better_compute.client import AsyncTransport, Options, Transport, errors
from better_compute.envelope import clients, openapi
from better_compute.envelope.clients.python import snake
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import Case, Running, cases, still

T = TypeVar("T")
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.django_db(transaction=True)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it to its end in a thread of its own: the browser's tests leave a loop behind in the main one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def function(client: Any, case: Case) -> Any:
    """The client's function for a method."""
    found = client
    for step in case.method.split("."):
        found = getattr(found, snake(step))
    return found


def arguments(case: Case) -> dict[str, Any]:
    options = Options(dry_run=case.mutation)
    return {**{snake(name): value for name, value in case.input.items()}, "options": options}


def test_every_method_answers_as_over_plain_http(running: Running, generated: Any) -> None:
    with Transport(running.url, running.token) as transport:
        client = generated.Client(transport)
        for case in cases():
            expected = running.outcome(case)
            if "code" in expected:
                with pytest.raises(errors.error_types[expected["code"]]):
                    function(client, case)(**arguments(case))
                continue
            answer = function(client, case)(**arguments(case))
            assert isinstance(answer, msgspec.Struct), case
            given = json.loads(msgspec.json.encode(answer))
            for name, value in still(given).items():
                assert value == still(expected["answer"])[name], (case, name)


@pytest.mark.parametrize("behind", ["/", "/api/compute", "/api/compute/"])
def test_the_address_that_the_api_is_read_at_is_good_too(running: Running, behind: str) -> None:
    with Transport(running.url + behind, running.token) as transport:
        assert "core" in transport.call("system.version")


def test_every_method_answers_under_asyncio(running: Running, generated: Any) -> None:
    async def call_all() -> None:
        async with AsyncTransport(running.url, running.token) as transport:
            client = generated.AsyncClient(transport)
            for case in cases():
                expected = await asyncio.to_thread(running.outcome, case)
                if "code" in expected:
                    with pytest.raises(errors.error_types[expected["code"]]):
                        await function(client, case)(**arguments(case))
                else:
                    await function(client, case)(**arguments(case))

    run(call_all())


def test_an_iterator_walks_all_pages(running: Running, generated: Any) -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", f"t{number}", -1) for number in range(7)])
    with Transport(running.url, running.token) as transport:
        keys = [each.key for each in generated.Client(transport).work.list_all(limit=3)]
    assert keys == [f"t{number}" for number in range(7)]

    async def walk() -> list[str]:
        async with AsyncTransport(running.url, running.token) as transport:
            return [each.key async for each in generated.AsyncClient(transport).work.list_all(limit=3)]

    assert run(walk()) == keys


def test_a_call_repeated_under_its_key_has_its_effect_once(running: Running, generated: Any) -> None:
    with Transport(running.url, running.token) as transport:
        widgets = generated.Client(transport).plugins.acme.widgets
        for _ in range(2):
            assert widgets.poke(tenant_id="t1", widget_id="w1", options=Options(idempotency_key="k")).poked == "w1"
        assert widgets.count(tenant_id="t1").count == 1
        with pytest.raises(errors.Conflict):
            widgets.poke(tenant_id="t1", widget_id="w1")


def test_the_request_id_stands_in_the_audit_record_and_in_the_refusal(running: Running, generated: Any) -> None:
    with Transport(running.url, running.token) as transport:
        widgets = generated.Client(transport).plugins.acme.widgets
        widgets.poke(tenant_id="t1", widget_id="w1", options=Options(request_id="req-1"))
        with pytest.raises(errors.InvalidInput) as caught:
            widgets.poke(tenant_id="t1", widget_id="NO", options=Options(request_id="req-2"))
    assert (caught.value.request_id, caught.value.problem.errors[0].pointer) == ("req-2", "/widgetId")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM compute_audit_events WHERE request_id = 'req-1'")
        assert cursor.fetchone() == (1,)


def test_a_bad_token_is_a_type_of_its_own(running: Running, generated: Any) -> None:
    with Transport(running.url, "nonsense") as transport, pytest.raises(errors.Unauthenticated):
        generated.Client(transport).system.version()


@pytest.mark.slow
def test_the_client_is_typed_strictly(tmp_path: Path) -> None:
    path = tmp_path / "compute_client.py"
    path.write_text(clients.python(json.loads(openapi.encode())), encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nstrict = True\nfollow_imports = silent\nmypy_path = {ROOT}\n", encoding="utf-8"
    )
    # What mypy knows of the library is kept from run to run.
    cache = ROOT / ".mypy_cache" / "client"
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(cache), path.name]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_client_needs_no_django(tmp_path: Path) -> None:
    (tmp_path / "compute_client.py").write_text(clients.python(json.loads(openapi.encode())), encoding="utf-8")
    code = "import sys, compute_client; print(any(name.partition('.')[0] == 'django' for name in sys.modules))"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True, env=environment)
    assert ran.stdout == "False\n"
