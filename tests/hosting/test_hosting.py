"""A process's life: initialize, presence, stop."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from better_compute import ComputeError, ErrorCode, compute, ledger, registry
from better_compute.contract.module import ModuleSpec
from better_compute.engine import hosting, wakeup
from better_compute.store import presence
from better_compute.store.session import connect
from tests.registry.specs import module

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    hosting.stop()


class Trace:
    """Modules that write down when they are started and stopped."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def module(self, name: str, *, start: Exception | None = None, stop: Exception | None = None) -> ModuleSpec:
        def started(ctx: Any) -> None:
            assert ctx.module == name
            self.note(f"start {name}", start)

        return module(name, path="tests.hosting", start=started, stop=lambda: self.note(f"stop {name}", stop))

    def note(self, event: str, failure: Exception | None = None) -> None:
        self.events.append(event)
        if failure is not None:
            raise failure


@pytest.fixture
def trace() -> Trace:
    return Trace()


def processes() -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(process) FROM compute_processes process ORDER BY role")
        return [json.loads(row) if isinstance(row, str) else row for (row,) in cursor.fetchall()]


def test_modules_start_in_hosted_order_and_stop_in_reverse(trace: Trace) -> None:
    with registry.override(trace.module("zoo"), trace.module("inventory"), trace.module("ape")):
        hosting.initialize("api")
        hosting.stop()
    assert trace.events == [
        "start inventory",
        "start zoo",
        "start ape",
        "stop ape",
        "stop zoo",
        "stop inventory",
    ]


def test_a_second_initialize_does_nothing(trace: Trace) -> None:
    with registry.override(trace.module("zoo")):
        hosting.initialize("api")
        hosting.initialize("api")
        assert len(processes()) == 1
    assert trace.events == ["start zoo"]


def test_a_second_stop_does_nothing(trace: Trace) -> None:
    with registry.override(trace.module("zoo")):
        hosting.initialize("api")
        hosting.stop()
        hosting.stop()
    assert trace.events == ["start zoo", "stop zoo"]


def test_a_process_that_stopped_can_be_initialized_again(trace: Trace) -> None:
    with registry.override(trace.module("zoo")):
        hosting.initialize("api")
        hosting.stop()
        hosting.initialize("api")
    assert trace.events == ["start zoo", "stop zoo", "start zoo"]


def test_a_start_that_throws_stops_the_started_ones_in_reverse_and_goes_through(trace: Trace) -> None:
    failure = ValueError("no")
    specs = [trace.module("a"), trace.module("b"), trace.module("c", start=failure), trace.module("d")]
    with registry.override(*specs), pytest.raises(ValueError, match="no") as raised:
        hosting.initialize("api")
    assert raised.value is failure
    assert trace.events == ["start a", "start b", "start c", "stop b", "stop a"]
    assert processes() == []


def test_a_process_whose_start_threw_can_be_initialized_again(trace: Trace) -> None:
    with registry.override(trace.module("a", start=ValueError("no"))), pytest.raises(ValueError, match="no"):
        hosting.initialize("api")
    with registry.override(trace.module("b")):
        hosting.initialize("api")
    assert trace.events == ["start a", "start b"]


def test_loops_stop_before_modules_last_registered_first(trace: Trace) -> None:
    with registry.override(trace.module("zoo")):
        hosting.initialize("controllers")
        hosting.on_stop(lambda: trace.note("stop loop 1"))
        hosting.on_stop(lambda: trace.note("stop loop 2"))
        hosting.stop()
    assert trace.events == ["start zoo", "stop loop 2", "stop loop 1", "stop zoo"]


def test_everything_stops_even_when_something_raises_and_the_first_error_goes_through(trace: Trace) -> None:
    specs = [trace.module("a", stop=ValueError("a")), trace.module("b", stop=ValueError("b")), trace.module("c")]
    with registry.override(*specs):
        hosting.initialize("api")
        hosting.on_stop(lambda: trace.note("stop loop", RuntimeError("loop")))
        with pytest.raises(RuntimeError, match="loop"):
            hosting.stop()
    assert trace.events[3:] == ["stop loop", "stop c", "stop b", "stop a"]
    assert processes() == []


def test_a_module_may_use_a_transaction_while_it_starts() -> None:
    def start(ctx: Any) -> None:
        with ctx.sql.transaction():
            ctx.sql.query("UPDATE compute_clock SET anchored_at = anchored_at")

    with registry.override(module(path="tests.hosting", start=start)):
        hosting.initialize("api")
        assert connection.in_atomic_block is False


def test_a_broken_rule_refuses_before_anything_starts(trace: Trace) -> None:
    with registry.override(trace.module("a"), module("Bad")), pytest.raises(ComputeError) as refused:
        hosting.initialize("api")
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert trace.events == []


def test_a_pending_migration_refuses_naming_it_and_the_command(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "pending", lambda using: ["core/0001_ledger", "acme/0001_widgets"])
    with registry.override(trace.module("a")), pytest.raises(ComputeError) as refused:
        hosting.initialize("api")
    assert str(refused.value) == (
        "INVALID_CONFIG: 2 migrations are pending: core/0001_ledger, acme/0001_widgets. Run `manage.py "
        "compute_migrate`, or set COMPUTE['MIGRATE_ON_START'] = True in development."
    )
    assert trace.events == []


def test_migrate_on_start_migrates_through_the_ledger_and_not_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[list[str]] = []
    real = ledger.migrate
    monkeypatch.setattr(ledger, "migrate", lambda using: applied.append(real(using)))
    with override_settings(COMPUTE={"MIGRATE_ON_START": True}):
        hosting.initialize("api")
    assert applied == [[]]


def test_the_connection_that_migrated_on_start_is_closed(process_env: dict[str, str]) -> None:
    code = """
import django
from django.db import connections
from django.test import override_settings
django.setup()
from better_compute import compute
with override_settings(COMPUTE={"MIGRATE_ON_START": True, "MIGRATION_DATABASE": "owner"}):
    compute.initialize("api")
print([each.alias for each in connections.all(initialized_only=True) if each.connection is not None])
compute.stop()
"""
    env = {**process_env, "DJANGO_SETTINGS_MODULE": "example_project.settings"}
    env["OWNER_DATABASE_URL"] = env["DATABASE_URL"]
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "[]\n"), told.stderr


def test_a_clock_that_went_back_refuses_to_start(trace: Trace) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE compute_clock SET anchored_at = compute_now() + interval '1 hour'")
    try:
        with registry.override(trace.module("a")), pytest.raises(ComputeError, match="behind"):
            hosting.initialize("api")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE compute_clock SET anchored_at = NULL")
    assert trace.events == []
    assert processes() == []


def test_a_database_that_cannot_be_reached_is_a_clear_refusal() -> None:
    connection.close()
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(ComputeError, match="The database 'default' cannot be reached") as refused,
    ):
        patch.setitem(connection.settings_dict, "PORT", "1")
        hosting.initialize("api")
    assert refused.value.code is ErrorCode.STORAGE_BUSY


def test_a_process_states_what_it_is_and_what_it_hosts() -> None:
    hosting.initialize("stream", connections_held=7)
    [process] = processes()
    assert (process["role"], process["host"], process["pid"]) == ("stream", socket.gethostname(), os.getpid())
    assert process["fingerprint"] == registry.current().fingerprint
    assert process["modules"] == [spec.name for spec in registry.current().modules]
    assert process["connections"] == 7 + 1 + wakeup.connections_held()


def test_stop_deletes_the_process_row() -> None:
    hosting.initialize("api")
    hosting.stop()
    assert processes() == []


def presence_backends() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND query LIKE '%compute_processes%'"
        )
        return int(cursor.fetchone()[0])


def test_presence_is_refreshed_from_a_connection_that_is_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed = Event()
    real = presence.say_up

    def say_up(process: presence.Process, using: str) -> None:
        real(process, using)
        if process.role == "api" and initialized.is_set():
            refreshed.set()

    initialized = Event()
    monkeypatch.setattr(presence, "say_up", say_up)
    monkeypatch.setattr(presence, "REFRESH", presence.timedelta(milliseconds=20))
    hosting.initialize("api")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE compute_processes SET seen_at = seen_at - interval '1 hour' RETURNING seen_at")
        [(old,)] = cursor.fetchall()
    initialized.set()
    assert refreshed.wait(10)
    with connection.cursor() as cursor:
        cursor.execute("SELECT seen_at FROM compute_processes")
        assert cursor.fetchone()[0] > old
    hosting.stop()
    # A backend ends a moment after its client has closed the connection.
    until = time.monotonic() + 10
    while presence_backends():
        assert time.monotonic() < until, "the connection that says up is still open"
        time.sleep(0.05)


def test_rows_of_processes_that_died_are_swept_by_the_next_start() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO compute_processes (id, role, host, pid, fingerprint, modules, started_at, seen_at)
               VALUES (gen_random_uuid(), 'dead', 'h', 1, 'f', '[]', compute_now(),
                       compute_now() - interval '2 hours')"""
        )
    hosting.initialize("api")
    assert [process["role"] for process in processes()] == ["api"]


# The thread that says the process is up does not come along, which is what the child must live with.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_begins_a_life_of_its_own(trace: Trace) -> None:
    with registry.override(trace.module("a")):
        hosting.initialize("api")
        child = os.fork()
        if child == 0:
            hosting.stop()
            os._exit(0 if trace.events == ["start a"] else 1)
        assert os.waitpid(child, 0)[1] == 0
        hosting.stop()
        assert trace.events == ["start a", "stop a"]


def test_the_facade_initializes_and_stops(trace: Trace) -> None:
    with registry.override(trace.module("a")):
        compute.initialize("api")
        assert compute.registry is registry.current()
        compute.stop()
    assert trace.events == ["start a", "stop a"]


def test_a_real_process_leaves_its_row_and_ends_it_by_itself(process_env: dict[str, str]) -> None:
    program = (
        "import django; django.setup()\n"
        "from better_compute import compute\n"
        "compute.initialize('api')\n"
        "from better_compute.store import health\n"
        "print(*[process.role for process in health.live_processes('default')])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=process_env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout.strip()) == (0, "api"), ended.stderr
    assert processes() == []


def test_an_empty_database_is_refused_with_one_line(
    process_env: dict[str, str], fresh_database: Callable[[], str]
) -> None:
    program = (
        "import django; django.setup()\n"
        "from better_compute import ComputeError, compute\n"
        "try:\n"
        "    compute.initialize('api')\n"
        "except ComputeError as refusal:\n"
        "    print(refusal)\n"
    )
    env = {**process_env, "DATABASE_URL": fresh_database()}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("INVALID_CONFIG: ")
    assert "core/0001_ledger" in ended.stdout
    assert "manage.py compute_migrate" in ended.stdout


def test_stopping_does_not_wait_for_a_database_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "_FAREWELL_SECONDS", 0.2)
    hosting.initialize("api")
    with connect("default", "test", {}) as other, other.transaction():
        other.execute("LOCK TABLE compute_processes")
        began = time.monotonic()
        hosting.stop()
        assert 0.2 <= time.monotonic() - began < 5
    until = time.monotonic() + 15
    while processes():
        assert time.monotonic() < until
        time.sleep(0.02)
