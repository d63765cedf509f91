"""``compute_migrate``: what it runs, in which order, and what it leaves behind."""

from __future__ import annotations

import pytest

from tests.ledger.host import Host, run_sql, table


@pytest.mark.usefixtures("from_nothing")
def test_every_migration_of_a_hosted_module_gets_one_ledger_row(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"), m0002_two=table("plg_acme_two"))
    host.manage("compute_migrate")
    assert host.ledger("acme") == [("acme/0001_one", "applied"), ("acme/0002_two", "applied")]
    names = [name for name, _ in host.ledger("core")]
    assert names[0] == "core/0001_ledger"
    assert len(names) == len(set(names))


def test_a_ledger_row_says_who_made_it_and_from_what(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    ((version, applied_by, checksum, duration),) = host.rows(
        "SELECT version, applied_by, checksum, duration_ms FROM compute_migrations WHERE owner = 'acme'"
    )
    assert version == "3.1"
    assert applied_by == host.server["USER"]
    assert len(checksum) == 64
    assert duration >= 0


@pytest.mark.usefixtures("from_nothing")
def test_modules_migrate_in_hosted_order_and_not_by_label(host: Host) -> None:
    host.plugin("zeta", m0001_one=table("plg_zeta_one"))
    host.plugin("alpha", m0001_one=table("plg_alpha_one"))
    host.manage("compute_migrate")
    owners = list(dict.fromkeys(name.partition("/")[0] for name, _ in host.ledger()))
    assert owners == ["core", "zeta", "alpha"]


@pytest.mark.usefixtures("from_nothing")
def test_plain_migrate_takes_the_same_order_and_ledger(host: Host) -> None:
    host.plugin("zeta", m0001_one=table("plg_zeta_one"))
    host.plugin("alpha", m0001_one=table("plg_alpha_one"))
    host.manage("migrate")
    owners = list(dict.fromkeys(name.partition("/")[0] for name, _ in host.ledger()))
    assert owners == ["core", "zeta", "alpha"]


@pytest.mark.usefixtures("from_nothing")
def test_other_apps_are_migrated_but_are_not_in_the_ledger(host: Host) -> None:
    host.manage("compute_migrate")
    assert host.has_table("auth_permission")
    assert {name.partition("/")[0] for name, _ in host.ledger()} == {"core"}


def test_a_module_is_migrated_alone_with_what_it_depends_on(host: Host) -> None:
    host.plugin("zeta", m0001_one=table("plg_zeta_one"))
    host.plugin("alpha", m0001_one=table("plg_alpha_one"))
    host.manage("compute_migrate", "--module", "alpha")
    assert host.has_table("plg_alpha_one")
    assert not host.has_table("plg_zeta_one")


def test_an_unknown_module_is_refused_with_those_that_are_hosted(host: Host) -> None:
    result = host.manage("compute_migrate", "--module", "nosuch", exit_code=2)
    assert "Module 'nosuch' is not hosted here; hosted are core." in result.err


def test_a_failed_migration_leaves_nothing_and_those_before_it_stay(host: Host) -> None:
    host.plugin(
        "acme",
        m0001_one=table("plg_acme_one"),
        m0002_two=table("plg_acme_two") + run_sql("SELECT 1 / 0"),
    )
    result = host.manage("compute_migrate", exit_code=4)
    assert "acme/0002_two failed: DivisionByZero (SQLSTATE 22012): division by zero" in result.err
    assert host.ledger("acme") == [("acme/0001_one", "applied")]
    assert not host.has_table("plg_acme_two")
    assert host.rows("SELECT name FROM django_migrations WHERE app = 'plg_acme'") == [("0001_one",)]


def test_plain_migrate_names_the_migration_that_failed(host: Host) -> None:
    host.plugin("acme", m0001_one=run_sql("SELECT 1 / 0"))
    assert (
        "acme/0001_one failed: DivisionByZero (SQLSTATE 22012): division by zero."
        in host.manage("migrate", exit_code=4).err
    )


def test_deferred_sql_commits_with_the_ledger_row(host: Host) -> None:
    parent = (
        'migrations.CreateModel("Parent", [("id", models.BigAutoField(primary_key=True))]),'
        'migrations.CreateModel("Child", [("id", models.BigAutoField(primary_key=True)),'
        ' ("parent", models.ForeignKey("plg_acme.Parent", models.CASCADE))]),'
    )
    host.plugin("acme", m0001_one=parent)
    # The foreign key is deferred SQL, which Django alone records after its commit.
    host.manage(
        "compute_migrate",
        script="""
        from better_compute.ledger.recorder import LedgerRecorder
        record = LedgerRecorder.record_applied
        def fail(self, app, name):
            record(self, app, name)
            if app == "plg_acme":
                raise RuntimeError("stop here")
        LedgerRecorder.record_applied = fail
        """,
        exit_code=4,
    )
    assert not host.has_table("plg_acme_child")
    assert host.ledger("acme") == []
    host.manage("compute_migrate")
    assert host.ledger("acme") == [("acme/0001_one", "applied")]


@pytest.mark.usefixtures("from_nothing")
def test_check_answers_1_while_anything_is_pending_and_changes_nothing(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    result = host.manage("compute_migrate", "--check", "--format", "json", exit_code=1)
    assert result.json()["pending"][-1] == "acme/0001_one"
    assert not host.has_table("django_migrations")
    host.manage("compute_migrate")
    assert host.manage("compute_migrate", "--check").out == "Nothing is pending.\n"


@pytest.mark.usefixtures("from_nothing")
def test_plan_shows_what_would_run_and_changes_nothing(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    result = host.manage("compute_migrate", "--plan")
    assert "acme/0001_one\n    Raw SQL operation" in result.out
    assert "core/0001_ledger\n    Run 0001_ledger.sql" in result.out
    assert not host.has_table("django_migrations")


def test_each_applied_migration_is_a_line_with_its_duration(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    lines = host.manage("compute_migrate").out.splitlines()
    (line,) = [line for line in lines if line.startswith("acme/0001_one ")]
    assert line.endswith(" s")
    assert float(line.split()[1]) >= 0


def test_json_lists_what_was_applied_with_its_duration(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    answer = host.manage("compute_migrate", "--format", "json").json()
    assert answer["applied"][-1]["name"] == "acme/0001_one"
    assert answer["applied"][-1]["seconds"] >= 0
    assert host.manage("compute_migrate", "--format", "json").json() == {"applied": []}


def test_json_holds_the_refusal(host: Host) -> None:
    host.plugin("acme", m0001_one=run_sql("SELECT 1 / 0"))
    error = host.manage("compute_migrate", "--format", "json", exit_code=4).json()["error"]
    assert error["exit"] == 4
    assert error["message"] == "acme/0001_one failed: DivisionByZero (SQLSTATE 22012): division by zero."


def test_unapplying_is_recorded_and_applying_again_too(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    host.manage("migrate", "plg_acme", "zero")
    assert not host.has_table("plg_acme_one")
    host.manage("migrate", "plg_acme")
    assert [action for _, action in host.ledger("acme")] == ["applied", "reverted", "applied"]


def test_an_irreversible_migration_says_so(host: Host) -> None:
    host.plugin("acme", m0001_one=run_sql("CREATE TABLE plg_acme_one ()"))
    host.manage("compute_migrate")
    result = host.manage("migrate", "plg_acme", "zero", exit_code=4)
    assert "acme/0001_one failed" in result.err
    assert "It cannot be reversed" in result.err
    assert host.ledger("acme") == [("acme/0001_one", "applied")]


def test_the_core_can_be_unapplied_to_nothing_and_comes_back(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    host.manage("migrate", "compute", "zero")
    assert host.rows("SELECT relname FROM pg_class WHERE relname LIKE 'compute\\_%' AND relkind = 'r'") == []
    assert not host.has_table("plg_acme_one")
    host.manage("compute_migrate")
    assert host.ledger("acme") == [("acme/0001_one", "applied")]


def test_a_plugin_with_a_hyphen_owns_its_name(host: Host) -> None:
    host.plugin("site-tools", m0001_one=table("plg_site_tools_one"))
    host.manage("compute_migrate")
    assert host.ledger("site-tools") == [("site-tools/0001_one", "applied")]


def test_a_migration_gives_way_when_it_gets_no_table_lock_and_tries_again(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    host.migration(
        folder, "0002_two", run_sql("ALTER TABLE plg_acme_one ADD COLUMN two int"), [("plg_acme", "0001_one")]
    )
    with host.connect() as connection:
        connection.autocommit = False
        connection.execute("LOCK TABLE plg_acme_one IN ACCESS SHARE MODE")
        process = host.start("compute_migrate", "--lock-timeout", "0.2")
        assert process.stdout is not None
        waiting = next(line for line in process.stdout if "did not get its table locks" in line)
        assert "acme/0002_two did not get its table locks in try 1" in waiting
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert host.ledger("acme")[-1] == ("acme/0002_two", "applied")


def test_the_state_is_right_after_a_second_try(host: Host) -> None:
    folder = host.plugin(
        "acme", m0001_one='migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True))]),'
    )
    host.manage("compute_migrate")
    host.migration(
        folder,
        "0002_two",
        'migrations.AddField("one", "two", models.IntegerField(null=True)),',
        [("plg_acme", "0001_one")],
    )
    host.migration(
        folder,
        "0003_three",
        'migrations.AlterField("one", "two", models.BigIntegerField(null=True)),',
        [("plg_acme", "0002_two")],
    )
    with host.connect() as connection:
        connection.autocommit = False
        connection.execute("LOCK TABLE plg_acme_one IN ACCESS SHARE MODE")
        process = host.start("compute_migrate", "--lock-timeout", "0.2")
        assert process.stdout is not None
        next(line for line in process.stdout if "did not get its table locks" in line)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert host.rows(
        "SELECT data_type FROM information_schema.columns WHERE table_name = 'plg_acme_one' AND column_name = 'two'"
    ) == [("bigint",)]


def test_a_migration_costs_one_statement_more_than_djangos(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"), m0002_two=table("plg_acme_two"))
    result = host.manage(
        "compute_migrate",
        script="""
        from django.db import connection
        from better_compute.ledger.executor import LedgerExecutor
        def tell(execute, sql, *rest):
            print("statement:", *str(sql).split()[:2])
            return execute(sql, *rest)
        apply_migration = LedgerExecutor.apply_migration
        def watched(self, state, migration, **options):
            if migration.name != "0002_two":
                return apply_migration(self, state, migration, **options)
            with connection.execute_wrapper(tell):
                return apply_migration(self, state, migration, **options)
        LedgerExecutor.apply_migration = watched
        """,
    )
    statements = [line for line in result.out.splitlines() if line.startswith("statement:")]
    # Beside BEGIN and COMMIT: no savepoint, and both records in one.
    assert statements == [
        "statement: SELECT set_config('lock_timeout',",
        "statement: CREATE TABLE",
        "statement: WITH django",
    ]
