"""Many migrators at once, migrators that die, and connections that change."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command

from better_compute.ledger.engine import version_problem
from better_compute.store.migration_lock import KEY
from tests.ledger.host import Host, finished, run_sql, table
from tests.warm import Started

#: Holds every migrator at the door until all of them are there, so that they really meet.
BARRIER = """
import os, pathlib, time
here = pathlib.Path({folder!r})
here.joinpath(str(os.getpid())).touch()
while len(list(here.iterdir())) < {count}:
    time.sleep(0.01)
"""

CONCURRENT = """
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from better_compute import ComputeMigration

class Migration(ComputeMigration):
    atomic = False
    non_atomic_reason = "The table is large, and writers must not wait."
    dependencies = [("plg_acme", "0001_one")]
    operations = [AddIndexConcurrently("one", models.Index(fields=["kind"], name="plg_acme_one_kind"))]
"""

MODEL = (
    'migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True)), ("kind", models.IntegerField())]),'
)


def meet(host: Host, count: int, tmp_path: Path) -> list[Started]:
    """Start ``count`` migrators that begin together."""
    folder = tmp_path / f"barrier{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    script = BARRIER.format(folder=str(folder), count=count)
    commands = ["compute_migrate" if number % 2 else "migrate" for number in range(count)]
    return [host.start(command, script=script) for command in commands]


def every_name_once(host: Host) -> None:
    """Neither the ledger nor Django's table has a name twice."""
    assert set(Counter(host.ledger()).values()) == {1}
    assert set(Counter(host.rows("SELECT app, name FROM django_migrations")).values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("applied", ["nothing", "half", "all"])
@pytest.mark.usefixtures("from_nothing")
def test_eight_migrators_at_once_all_succeed_and_one_applies(host: Host, tmp_path: Path, applied: str) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    if applied != "nothing":
        host.manage("compute_migrate")
    if applied != "all":
        host.migration(folder, "0002_two", table("plg_acme_two"), [("plg_acme", "0001_one")])
    for process in meet(host, 8, tmp_path):
        finished(process)
    every_name_once(host)
    assert host.has_table("plg_acme_one")
    host.manage("compute_migrate", "--check")


def test_a_concurrent_index_does_not_deadlock_with_migrators_that_wait(host: Host, tmp_path: Path) -> None:
    folder = host.plugin("acme", m0001_one=MODEL)
    folder.joinpath("0002_index.py").write_text(CONCURRENT)
    for process in meet(host, 4, tmp_path):
        finished(process)
    assert host.ledger("acme") == [
        ("acme/0001_one", "applied"),
        ("acme/0002_index", "started"),
        ("acme/0002_index", "applied"),
    ]


@pytest.mark.usefixtures("from_nothing")
def test_waiting_says_who_holds_the_lock_and_then_gives_up_with_3(host: Host) -> None:
    with host.connect(application_name="someone else") as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [KEY])
        result = host.manage("compute_migrate", "--lock-wait", "0.5", exit_code=3)
        pid = holder.info.backend_pid
    assert (
        f"Waiting for the migration lock, held by PostgreSQL process {pid} (someone else), role bc_owner" in result.err
    )
    assert "The migration lock was not free within 0.5 s" in result.err
    assert not host.has_table("django_migrations")


def test_plain_migrate_waits_for_its_turn_too(host: Host) -> None:
    with host.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [KEY])
        host.manage("migrate", "--lock-wait", "0", exit_code=3)


@pytest.mark.parametrize(
    ("option", "value", "least"),
    [
        ("--lock-wait", "-1", "0"),
        ("--lock-wait", "nan", "0"),
        ("--lock-wait", "soon", "0"),
        ("--lock-timeout", "0", "0.001"),
        ("--lock-timeout", "0.0001", "0.001"),
        ("--lock-timeout", "inf", "0.001"),
    ],
)
def test_a_wait_that_postgresql_would_take_for_another_is_refused(option: str, value: str, least: str) -> None:
    from better_compute.management.commands.compute_migrate import Command

    with pytest.raises(CommandError, match=f"argument {option}: '{value}' must be seconds from {least} to 2000000"):
        call_command(Command(), f"{option}={value}")


def test_a_waiting_migrator_holds_no_transaction(host: Host) -> None:
    with host.connect() as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [KEY])
        process = host.start("compute_migrate")
        assert process.stderr is not None
        next(line for line in process.stderr if "Waiting for the migration lock" in line)
        waiting = holder.execute(
            "SELECT state, backend_xmin FROM pg_stat_activity WHERE application_name LIKE 'compute_migrate %' "
            "AND datname = current_database()"
        ).fetchall()
        assert waiting == [("idle", None)]
        # Nobody waits inside PostgreSQL either.
        queued = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        assert holder.execute(queued).fetchone() == (0,)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_lock_holder_that_dies_frees_the_lock(host: Host) -> None:
    holder = host.connect()
    holder.execute("SELECT pg_advisory_lock(%s)", [KEY])
    process = host.start("compute_migrate")
    assert process.stderr is not None
    next(line for line in process.stderr if "Waiting for the migration lock" in line)
    with host.connect() as other:
        other.execute("SELECT pg_terminate_backend(%s)", [holder.info.backend_pid])
    process.communicate(timeout=60)
    assert process.returncode == 0
    with pytest.raises(psycopg.OperationalError):
        holder.execute("SELECT 1")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_migrator_killed_inside_a_long_statement_frees_the_lock_soon(host: Host, how: signal.Signals) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one") + run_sql("SELECT pg_sleep(600)"))
    process = host.start("compute_migrate")
    sleeping = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(600)%' "
    with host.connect() as connection:
        while not connection.execute(sleeping + "AND pid <> pg_backend_pid()").fetchone():
            time.sleep(0.02)
        os.kill(process.pid, how)
        process.communicate(timeout=60)
        assert process.returncode != 0
    host.manage("compute_migrate", "--module", "core", "--lock-wait", "20")
    assert not host.has_table("plg_acme_one")


#: Ends the migrator at once, as kill -9 does: nothing is flushed, closed or rolled back by it.
DIE = """
import os
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from django.db.migrations import Migration
from better_compute.ledger.executor import LedgerExecutor
from better_compute.ledger.recorder import LedgerRecorder

POINT = {point!r}
NAME = "0002_two"
current = []

apply_migration = LedgerExecutor.apply_migration
def starting(self, state, migration, *rest, **options):
    current[:] = [migration.name]
    return apply_migration(self, state, migration, *rest, **options)
LedgerExecutor.apply_migration = starting

def dies(owner, method, *, before):
    original = getattr(owner, method)
    def wrapped(*args, **options):
        if before and current == [NAME]:
            os._exit(9)
        result = original(*args, **options)
        if current == [NAME]:
            os._exit(9)
        return result
    setattr(owner, method, wrapped)

if POINT == "before DDL":
    dies(Migration, "apply", before=True)
elif POINT == "after DDL":
    dies(Migration, "apply", before=False)
elif POINT == "before record":
    dies(LedgerRecorder, "record_applied", before=True)
elif POINT == "after record":
    dies(LedgerRecorder, "record_applied", before=False)
elif POINT == "before commit":
    dies(DatabaseWrapper, "_commit", before=True)
elif POINT == "after commit":
    dies(DatabaseWrapper, "_commit", before=False)
"""


@pytest.mark.parametrize(
    "point", ["before DDL", "after DDL", "before record", "after record", "before commit", "after commit"]
)
def test_a_migrator_killed_at_any_point_is_completed_by_the_next(host: Host, point: str) -> None:
    host.plugin("acme", m0001_one=MODEL, m0002_two=table("plg_acme_two"), m0003_three=table("plg_acme_three"))
    host.manage("compute_migrate", script=DIE.format(point=point), exit_code=9)
    done = point == "after commit"
    assert host.has_table("plg_acme_two") is done
    assert (("acme/0002_two", "applied") in host.ledger()) is done
    host.manage("compute_migrate")
    assert host.ledger("acme") == [
        ("acme/0001_one", "applied"),
        ("acme/0002_two", "applied"),
        ("acme/0003_three", "applied"),
    ]
    every_name_once(host)


def test_a_migrator_killed_in_the_middle_is_completed_by_those_that_wait(host: Host, tmp_path: Path) -> None:
    host.plugin("acme", m0001_one=MODEL, m0002_two=table("plg_acme_two"), m0003_three=table("plg_acme_three"))
    gate = tmp_path / "gate"
    # The first one takes the lock, lets the others begin to wait, and dies between its DDL and its record.
    script = DIE.format(point="after DDL").replace(
        "os._exit(9)",
        f"(print('dying', flush=True), __import__('time').sleep(0.3), os._exit(9)) if not "
        f"__import__('pathlib').Path({str(gate)!r}).exists() else None",
    )
    first = host.start("compute_migrate", script=script)
    assert next(line for line in first.stdout if "dying" in line)
    gate.touch()
    others = [host.start("compute_migrate") for _ in range(2)]
    first.communicate(timeout=60)
    assert first.returncode == 9
    for process in others:
        finished(process)
    every_name_once(host)
    assert host.has_table("plg_acme_three")


INTERRUPT = """
import os
from django.db.migrations import Migration
from better_compute.ledger.recorder import LedgerRecorder

apply = Migration.apply
def before(self, *rest, **options):
    if self.name == "0002_index" and {point!r} == "before DDL":
        os._exit(9)
    result = apply(self, *rest, **options)
    if self.name == "0002_index" and {point!r} == "after DDL":
        os._exit(9)
    return result
Migration.apply = before
"""


@pytest.mark.parametrize("point", ["before DDL", "after DDL"])
def test_a_killed_concurrent_index_is_completed_by_the_next(host: Host, point: str) -> None:
    folder = host.plugin("acme", m0001_one=MODEL)
    folder.joinpath("0002_index.py").write_text(CONCURRENT)
    host.manage("compute_migrate", script=INTERRUPT.format(point=point), exit_code=9)
    assert host.ledger("acme")[-1] == ("acme/0002_index", "started")
    host.manage("compute_migrate")
    assert host.ledger("acme")[-2:] == [("acme/0002_index", "started"), ("acme/0002_index", "applied")]
    assert host.rows("SELECT indisvalid FROM pg_index WHERE indexrelid = 'plg_acme_one_kind'::regclass") == [(True,)]


def test_an_invalid_index_left_behind_is_built_again(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=MODEL)
    folder.joinpath("0002_index.py").write_text(
        CONCURRENT.replace("AddIndexConcurrently(", "AddConstraintlessUnique(").replace(
            "class Migration", UNIQUE + "\nclass Migration"
        )
    )
    host.manage("compute_migrate", "--module", "core")
    host.manage("migrate", "plg_acme", "0001")
    host.run("INSERT INTO plg_acme_one (kind) VALUES (1), (1)")
    assert "acme/0002_index failed" in host.manage("compute_migrate", exit_code=4).err
    assert host.rows("SELECT indisvalid FROM pg_index WHERE indexrelid = 'plg_acme_one_kind'::regclass") == [(False,)]
    host.run("DELETE FROM plg_acme_one")
    host.manage("compute_migrate")
    assert host.rows("SELECT indisvalid FROM pg_index WHERE indexrelid = 'plg_acme_one_kind'::regclass") == [(True,)]


#: An index that is unique, so that duplicates make the concurrent build fail and leave it invalid.
UNIQUE = """
class AddConstraintlessUnique(AddIndexConcurrently):
    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        sql = schema_editor.sql_create_index_concurrently
        schema_editor.sql_create_index_concurrently = sql.replace("CREATE INDEX", "CREATE UNIQUE INDEX")
        super().database_forwards(app_label, schema_editor, from_state, to_state)
"""


def test_a_connection_exchanged_under_a_run_is_reported_and_nothing_more_runs(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"), m0002_two=table("plg_acme_two"))
    # What a transaction pooler does: the next transaction is served by another backend.
    result = host.manage(
        "compute_migrate",
        script="""
        from better_compute.ledger.executor import LedgerExecutor
        apply_migration = LedgerExecutor.apply_migration
        def exchanged(self, state, migration, *rest, **options):
            if migration.name == "0002_two":
                self.connection.close()
            return apply_migration(self, state, migration, *rest, **options)
        LedgerExecutor.apply_migration = exchanged
        """,
        exit_code=4,
    )
    assert "The migration lock was taken by PostgreSQL process" in result.err
    assert "COMPUTE['MIGRATION_DATABASE']" in result.err
    assert host.ledger("acme") == [("acme/0001_one", "applied")]


def test_a_connection_exchanged_at_the_end_is_reported(host: Host) -> None:
    result = host.manage(
        "compute_migrate",
        script="""
        from django.db import connection
        from django.db.models.signals import post_migrate
        post_migrate.connect(lambda **_: connection.close(), weak=False)
        """,
        exit_code=4,
    )
    assert "so other migrators may have run beside this one" in result.err


def test_the_lock_is_held_while_post_migrate_runs(host: Host) -> None:
    result = host.manage(
        "compute_migrate",
        script="""
        from django.db import connection
        from django.db.models.signals import post_migrate
        def look(**_):
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_locks"
                    " WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()"
                )
                print("held:", cursor.fetchone()[0])
        post_migrate.connect(look, weak=False)
        """,
    )
    assert "held: 1" in result.out
    assert "held: 0" not in result.out


def test_old_servers_are_refused_in_one_line() -> None:
    assert version_problem(140013) == "PostgreSQL 14.13 is too old: Better Compute needs PostgreSQL 15 or later."
    assert version_problem(150000) is None
    assert version_problem(180001) is None


@pytest.mark.parametrize("command", ["compute_migrate", "migrate"])
def test_another_engine_is_refused_in_one_line(host: Host, command: str) -> None:
    path = host.root / "other.sqlite3"
    host.databases["default"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}
    host.configure()
    result = host.manage(command, exit_code=2 if command == "compute_migrate" else None)
    assert result.exit_code != 0
    assert "PostgreSQL" in result.err
    if command == "compute_migrate":
        assert len(result.err.strip().splitlines()) == 1, result.err
    assert not path.exists() or path.stat().st_size == 0


def test_an_unknown_alias_is_refused(host: Host) -> None:
    result = host.manage("compute_migrate", "--database", "nosuch", exit_code=2)
    assert "Database 'nosuch' is not in DATABASES, which holds default." in result.err


def test_a_non_atomic_migration_is_marked_started_first(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=MODEL)
    folder.joinpath("0002_index.py").write_text(CONCURRENT.replace('fields=["kind"]', 'fields=["nosuch"]'))
    host.manage("compute_migrate", exit_code=4)
    assert host.ledger("acme")[-1] == ("acme/0002_index", "started")


def test_a_non_atomic_migration_runs_again_after_it_was_reverted(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=MODEL)
    folder.joinpath("0002_index.py").write_text(CONCURRENT)
    host.manage("compute_migrate")
    host.manage("migrate", "plg_acme", "0001")
    host.manage("compute_migrate")
    assert [action for name, action in host.ledger("acme") if name == "acme/0002_index"] == [
        "started",
        "applied",
        "started",
        "reverted",
        "started",
        "applied",
    ]


def test_a_failed_run_gives_the_lock_back(host: Host) -> None:
    host.plugin("acme", m0001_one=run_sql("SELECT 1 / 0"))
    host.manage("compute_migrate", exit_code=4)
    host.manage("compute_migrate", "--lock-wait", "0", exit_code=4)


def test_a_migration_whose_connection_ends_says_to_run_it_again_and_the_next_run_completes(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one") + run_sql("SELECT pg_sleep(600)"))
    process = host.start("compute_migrate")
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
    )
    with host.connect() as connection:
        while not connection.execute(ended).fetchone():
            time.sleep(0.02)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "acme/0001_one failed: AdminShutdown (SQLSTATE 57P01): terminating connection due to" in err
    assert "It stands whole or not at all, and the ledger knows which: run it again when the server answers." in err
    assert not host.has_table("plg_acme_one")
    host.migration(host.root / "acme_app" / "migrations", "0001_one", table("plg_acme_one"))
    host.manage("compute_migrate")
    assert host.ledger("acme") == [("acme/0001_one", "applied")]
