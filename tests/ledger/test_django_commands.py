"""Django's own commands keep working beside ours."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.ledger.databases import Databases
from tests.ledger.host import REPOSITORY, Host, table

MODEL = 'migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True, serialize=False))]),'


def with_model(host: Host) -> None:
    """A plugin that has a model and the migration that makes it."""
    folder = host.plugin("acme", m0001_one=MODEL)
    folder.parent.joinpath("models.py").write_text(
        "from django.db import models\n\nclass One(models.Model):\n    id = models.BigAutoField(primary_key=True)\n"
    )


def test_makemigrations_check_is_clean(host: Host) -> None:
    with_model(host)
    host.manage("makemigrations", "--check", "--dry-run")


def test_makemigrations_writes_a_migration_that_the_check_explains(host: Host) -> None:
    with_model(host)
    path = host.root / "acme_app" / "models.py"
    path.write_text(path.read_text() + "    kind = models.IntegerField(null=True)\n")
    host.manage("makemigrations", "plg_acme", "-n", "kind")
    err = host.manage("compute_migrate", exit_code=2).err
    assert "class Migration(ComputeMigration):" in err


def test_showmigrations_and_plan_run_without_the_lock(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    assert "[ ] 0001_one" in host.manage("showmigrations", "plg_acme").out
    assert "acme.0001_one" in host.manage("migrate", "--plan").out
    host.manage("migrate", "--check", exit_code=1)
    host.manage("compute_migrate")
    host.manage("migrate", "--check")
    assert "[X] 0001_one" in host.manage("showmigrations", "plg_acme").out


def test_sqlmigrate_shows_the_sql(host: Host) -> None:
    assert "CREATE TABLE compute_migrations" in host.manage("sqlmigrate", "compute", "0001").out
    assert "DROP TABLE compute_migrations" in host.manage("sqlmigrate", "--backwards", "compute", "0001").out


def test_dumpdata_works_on_a_migrated_database(host: Host) -> None:
    with_model(host)
    host.manage("compute_migrate")
    host.run("INSERT INTO plg_acme_one DEFAULT VALUES")
    assert '"plg_acme.one"' in host.manage("dumpdata", "plg_acme").out


def test_the_test_runner_makes_a_database_with_a_ledger(host: Host) -> None:
    with_model(host)
    host.root.joinpath("acme_app", "tests.py").write_text(
        "from django.db import connection\n"
        "from django.test import TestCase, TransactionTestCase\n\n"
        "class Case(TransactionTestCase):\n"
        "    def test_one(self):\n"
        "        self.names()\n"
        "    def test_two(self):\n"
        "        self.names()\n"
        "    def names(self):\n"
        "        with connection.cursor() as cursor:\n"
        "            cursor.execute('SELECT count(*) FROM compute_migrations WHERE owner = %s', ['acme'])\n"
        "            self.assertEqual(cursor.fetchone()[0], 1)\n"
    )
    assert "OK" in host.manage("test", "acme_app").err


def test_flush_keeps_the_ledger_and_everything_append_only(host: Host) -> None:
    with_model(host)
    host.manage("compute_migrate")
    host.run("INSERT INTO plg_acme_one DEFAULT VALUES")
    host.run("INSERT INTO compute_outbox (type, tenant_id, subject, data) VALUES ('a.b', 't', 's', '{}')")
    before = host.ledger()
    host.manage("flush", "--no-input")
    assert host.rows("SELECT (SELECT count(*) FROM plg_acme_one), (SELECT count(*) FROM compute_outbox)") == [(0, 1)]
    assert host.ledger() == before


def test_a_squash_that_keeps_the_first_number_is_refused_with_the_next(host: Host) -> None:
    with_model(host)
    model = "    one = models.IntegerField(null=True)\n"
    path = host.root / "acme_app" / "models.py"
    path.write_text(path.read_text() + model)
    add = 'migrations.AddField("one", "one", models.IntegerField(null=True)),'
    host.migration(path.parent / "migrations", "0002_two", add, [("plg_acme", "0001_one")])
    host.manage("compute_migrate")
    host.manage("squashmigrations", "plg_acme", "0002", "--no-input")
    err = host.manage("compute_migrate", exit_code=2).err
    assert "compute.E013" in err
    (draft,) = path.parent.joinpath("migrations").glob("0001_squashed_*.py")
    draft.write_text(
        draft.read_text()
        .replace("(migrations.Migration)", "(ComputeMigration)")
        .replace("from django.db", "from better_compute import ComputeMigration\nfrom django.db", 1)
    )
    err = host.manage("compute_migrate", exit_code=2).err
    assert "Give it the next number, 0003" in err
    draft.rename(draft.with_name("0003_squashed.py"))
    host.manage("compute_migrate")
    assert host.ledger("acme")[-1] == ("acme/0003_squashed", "adopted")
    host.manage("makemigrations", "--check", "--dry-run")


def test_a_second_database_has_a_ledger_of_its_own(host: Host, databases: Databases) -> None:
    name = databases.create()
    host.databases["other"] = {**host.default_database, "NAME": name}
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("migrate", "--database", "other")
    assert host.ledger("acme") == []
    host.manage("compute_migrate", "--database", "other", "--check")
    with host.connect(database=name) as connection:
        assert connection.execute("SELECT name FROM compute_migrations WHERE owner = 'acme'").fetchall() == [
            ("acme/0001_one",)
        ]


def test_pytest_without_migrations_is_refused_with_the_reason(host: Host) -> None:
    with_model(host)
    host.root.joinpath("test_it.py").write_text("import pytest\n\n@pytest.mark.django_db\ndef test_it():\n    pass\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--ds", "settings", "--nomigrations"],
        cwd=host.root,
        env={**os.environ, "PYTHONPATH": f"{host.root}{os.pathsep}{REPOSITORY}", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode != 0
    assert "compute.E016" in ran.stdout
    assert "run tests without --nomigrations" in ran.stdout


def test_migrate_prunes_nothing_of_a_module_that_lost_a_migration(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"), m0002_two=table("plg_acme_two"))
    host.manage("compute_migrate")
    folder.joinpath("0002_two.py").unlink()
    host.manage("migrate", "--prune", "plg_acme", exit_code=5)
    assert host.rows("SELECT count(*) FROM django_migrations WHERE app = 'plg_acme'") == [(2,)]


def test_a_second_database_without_compute_is_migrated_as_django_does(host: Host) -> None:
    host.databases["other"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(host.root / "other.sqlite3")}
    host.more = 'DATABASE_ROUTERS = ["routers.Router"]'
    host.configure()
    host.root.joinpath("routers.py").write_text(
        "class Router:\n"
        "    def allow_migrate(self, db, app_label, **hints):\n"
        "        return db == 'default' or not app_label.startswith(('compute', 'plg_'))\n"
    )
    host.manage("migrate", "--database", "other")
    host.manage("compute_migrate")
    result = host.manage("compute_migrate", "--database", "other", exit_code=2)
    assert "Better Compute runs on PostgreSQL 15 or later only." in result.err


@pytest.mark.usefixtures("from_nothing")
def test_migrate_takes_the_alias_that_migrates_by_default(host: Host) -> None:
    host.databases["owner"] = host.default_database
    host.databases["default"] = {**host.default_database, "USER": "bc_app", "PASSWORD": ""}
    host.compute["MIGRATION_DATABASE"] = "owner"
    host.configure()
    host.manage("migrate")
    assert host.ledger("core")


@pytest.mark.usefixtures("from_nothing")
def test_wrap_migrate_off_leaves_djangos_command_alone(host: Host) -> None:
    host.compute["WRAP_MIGRATE"] = False
    host.configure()
    host.manage("migrate")
    assert host.has_table("compute_work")
    assert host.ledger() == []
