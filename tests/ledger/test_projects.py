"""Host projects unlike ours: other keys, users, schemas, databases and roles, each migrated and used for real."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg import errors

from tests.ledger.catalog import snapshot
from tests.ledger.databases import EMPTY, Databases
from tests.ledger.host import Host, finished, table

APP_ROLE = os.environ.get("COMPUTE_APP_ROLE", "bc_app")

#: What a host does with us: be ready to serve, call a method, step a reconciler, ask doctor.
SERVE = """
from better_compute import Principal, compute
compute.initialize("api")
print(compute.api.system.version(Principal(id="internal/test", kind="internal")))
print("problems:", [finding for finding in compute.self_check().findings if finding.severity == "error"])
compute.stop()
"""


def serves(host: Host) -> None:
    """A process of the host starts, answers and finds nothing wrong."""
    out = host.manage("version", script=SERVE).out
    assert "core=" in out
    assert "problems: []" in out


def test_another_default_auto_field_changes_no_table_of_ours(host: Host) -> None:
    before = snapshot(host)
    host.more = 'DEFAULT_AUTO_FIELD = "django.db.models.SmallAutoField"'
    key = 'models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")'
    host.plugin("acme", m0001_one=f'migrations.CreateModel("One", [("id", {key})]),')
    path = host.root / "acme_app" / "models.py"
    path.write_text("from django.db import models\n\nclass One(models.Model):\n    pass\n")
    host.manage("makemigrations", "--check", "--dry-run")
    host.manage("compute_migrate")
    assert [line for line in snapshot(host) if "plg_acme" not in line] == before
    serves(host)


@pytest.mark.usefixtures("from_nothing")
def test_a_user_model_of_the_host_owns_the_tokens(host: Host) -> None:
    folder = host.root / "people"
    folder.joinpath("migrations").mkdir(parents=True)
    for package in (folder, folder / "migrations"):
        package.joinpath("__init__.py").write_text("")
    folder.joinpath("models.py").write_text(
        "import uuid\n"
        "from django.contrib.auth.models import AbstractUser\n"
        "from django.db import models\n\n"
        "class Person(AbstractUser):\n"
        "    id = models.UUIDField(primary_key=True, default=uuid.uuid4)\n"
    )
    host.apps.append("people")
    host.more = 'AUTH_USER_MODEL = "people.Person"'
    host.configure()
    host.manage("makemigrations", "people")
    host.manage("makemigrations", "--check", "--dry-run")
    host.manage("compute_migrate")
    assert host.rows("SELECT to_regclass('auth_user') IS NULL") == [(True,)]
    assert host.rows(
        "SELECT confrelid::regclass::text, format_type(a.atttypid, NULL) FROM pg_constraint k"
        " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]"
        " WHERE contype = 'f' AND conrelid = 'compute_tokens'::regclass"
    ) == [("people_person", "uuid")]
    serves(host)


@pytest.fixture
def other_database(databases: Databases) -> str:
    """A second database of the same server."""
    return databases.create(EMPTY)


def test_compute_lives_in_a_second_database_that_a_router_gives_it(host: Host, other_database: str) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    shop = host.root / "shop"
    shop.joinpath("migrations").mkdir(parents=True)
    for package in (shop, shop / "migrations"):
        package.joinpath("__init__.py").write_text("")
    shop.joinpath("models.py").write_text("from django.db import models\n\nclass Order(models.Model):\n    pass\n")
    host.apps.append("shop")
    # The host's own database is the new one; compute and what its tables refer to are where they were.
    host.databases["fleet"] = host.default_database
    host.databases["default"] = {**host.default_database, "NAME": other_database}
    host.compute["DATABASE"] = "fleet"
    host.more = 'DATABASE_ROUTERS = ["routers.Router"]'
    host.root.joinpath("routers.py").write_text(
        "FLEET = ('auth', 'contenttypes')\n"
        "def ours(label):\n"
        "    return label.startswith(('compute', 'plg_')) or label in FLEET\n"
        "class Router:\n"
        "    def db_for_read(self, model, **hints):\n"
        "        return 'fleet' if ours(model._meta.app_label) else 'default'\n"
        "    db_for_write = db_for_read\n"
        "    def allow_migrate(self, db, app_label, **hints):\n"
        "        return db == ('fleet' if ours(app_label) else 'default')\n"
    )
    host.configure()
    host.manage("makemigrations", "shop")
    host.manage("compute_migrate")
    assert host.ledger("acme") == [("acme/0001_one", "applied")]
    assert not host.has_table("shop_order")
    host.manage("migrate")
    with host.connect(database=other_database) as connection:
        tables = {
            name
            for (name,) in connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname !~ '^pg_|^sql_'"
            )
        }
    assert tables == {"django_migrations", "shop_order"}
    serves(host)


def test_times_without_zones_are_refused_with_the_reason(host: Host) -> None:
    host.more = "USE_TZ = False"
    host.configure()
    before = host.ledger()
    for command, code in (("check", 1), ("compute_migrate", 2), ("migrate", 1)):
        err = host.manage(command, exit_code=code).err
        assert "compute.E075" in err
        assert "Set USE_TZ = True" in err
    assert host.ledger() == before


@pytest.mark.usefixtures("from_nothing")
def test_a_schema_other_than_public_holds_everything(host: Host) -> None:
    host.run("CREATE SCHEMA fleet")
    host.compute["APP_ROLE"] = APP_ROLE
    host.databases["default"] = {**host.default_database, "OPTIONS": {"options": "-c search_path=fleet"}}
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    host.manage("compute_migrate", "--check")
    assert snapshot(host, schema="public") == []
    assert any(line.startswith("r plg_acme_one ") for line in snapshot(host, schema="fleet"))
    serves(host)
    with host.connect(
        user=APP_ROLE, password=os.environ.get("COMPUTE_APP_PASSWORD"), options="-c search_path=fleet"
    ) as app:
        app.execute("INSERT INTO plg_acme_one VALUES (1)")
        app.execute("SELECT compute_now()")
        with pytest.raises(errors.InsufficientPrivilege):
            app.execute("DELETE FROM compute_outbox")
    host.manage("compute_module", "remove", "acme", "--yes")
    assert not any("plg_acme" in line for line in snapshot(host, schema="fleet"))


@pytest.mark.usefixtures("from_nothing")
def test_an_owner_that_may_only_create_in_its_schema_migrates_and_another_role_serves(host: Host) -> None:
    owner = f"owner_{uuid4().hex[:8]}"
    host.run(f"CREATE ROLE {owner} LOGIN PASSWORD 'owner' NOSUPERUSER NOCREATEDB NOCREATEROLE")
    try:
        host.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        # These two are all that docs/how-to/deploy.md gives the owner.
        host.run(f"GRANT CREATE, USAGE ON SCHEMA public TO {owner}")
        host.run(f"GRANT USAGE ON SCHEMA public TO {APP_ROLE}")
        server = host.default_database
        host.databases["owner"] = {**server, "USER": owner, "PASSWORD": "owner"}
        host.databases["default"] = {
            **server,
            "USER": APP_ROLE,
            "PASSWORD": os.environ.get("COMPUTE_APP_PASSWORD", ""),
        }
        host.compute.update({"APP_ROLE": APP_ROLE, "MIGRATION_DATABASE": "owner"})
        host.plugin("acme", m0001_one=table("plg_acme_one"))
        host.manage("compute_migrate")
        owners = host.rows(
            "SELECT DISTINCT pg_get_userbyid(relowner)::text FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')"
        )
        assert owners == [(owner,)]
        serves(host)
        with host.connect(user=APP_ROLE, password=os.environ.get("COMPUTE_APP_PASSWORD")) as app:
            for guarded in ("compute_outbox", "compute_audit_events", "compute_migrations"):
                with pytest.raises(errors.InsufficientPrivilege):
                    app.execute(f"ALTER TABLE {guarded} DISABLE TRIGGER ALL")  # type: ignore[arg-type]
    finally:
        drop_role(host, owner)


def drop_role(host: Host, role: str) -> None:
    """Drop a role with everything that it owns in the host's database."""
    host.run(f"GRANT {role} TO CURRENT_USER")
    host.run(f"DROP OWNED BY {role} CASCADE")
    host.run(f"DROP ROLE {role}")


#: Stays up until a file appears, as a server does until it is told to stop.
STAY = """
import pathlib, time
from better_compute import compute
compute.initialize("api")
print("up", flush=True)
while not pathlib.Path("stop").exists():
    time.sleep(0.02)
compute.stop()
"""


def test_two_processes_that_host_different_modules_are_found(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    other = host.start("version", script=STAY)
    assert other.stdout.readline() == "up\n"
    host.apps.remove("acme_app")
    host.configure()
    found = host.manage("doctor", "--format", "json", exit_code=None).json()["findings"]
    (finding,) = [each for each in found if each["check"] == "registry.fingerprint"]
    assert f":{other.pid} with acme." in finding["message"]
    assert "Finish the deployment" in finding["fix"]
    host.root.joinpath("stop").touch()
    other.communicate(timeout=60)
    assert other.returncode == 0
    found = host.manage("doctor", "--format", "json", exit_code=None).json()["findings"]
    assert "registry.fingerprint" not in [each["check"] for each in found]


def test_two_projects_that_share_a_database_leave_each_other_alone(host: Host, tmp_path: Path) -> None:
    root = tmp_path / "second"
    root.mkdir()
    second = Host(root, host.database, host.server, host.warm)
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    second.plugin("beta", m0001_one=table("plg_beta_one"))
    for process in [each.start("compute_migrate") for each in (host, second)]:
        finished(process)
    for each in (host, second):
        each.manage("compute_migrate", "--check")
    found = host.manage("doctor", "--format", "json", exit_code=None).json()["findings"]
    assert [each["message"] for each in found if each["check"] == "migrations.orphans"] == [
        "Module 'beta' is not installed any more, but 1 of its migrations stand in the schema."
    ]
    host.manage("compute_module", "remove", "acme", "--yes")
    second.manage("compute_migrate", "--check")
    assert (host.has_table("plg_acme_one"), host.has_table("plg_beta_one")) == (False, True)


def test_another_module_of_the_same_name_is_refused_in_a_database_that_knows_it(host: Host, tmp_path: Path) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    root = tmp_path / "second"
    root.mkdir()
    second = Host(root, host.database, host.server, host.warm)
    second.plugin("acme", m0001_first=table("plg_acme_first"))
    err = second.manage("compute_migrate", exit_code=5).err
    assert "acme/0001_one: it is applied, but not shipped." in err
    assert not host.has_table("plg_acme_first")


def test_a_process_whose_module_wants_another_core_does_not_start(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    path = folder.parent / "apps.py"
    path.write_text(path.read_text() + '    core_versions = ">=99"\n    requires = ["capacity"]\n')
    before = host.ledger()
    for command, code in (("check", 1), ("compute_migrate", 2)):
        err = host.manage(command, exit_code=code).err
        assert "Plugin 'acme': it works with better_compute >=99, and " in err
        assert "Plugin 'acme': it requires 'capacity', which is not hosted." in err
    result = host.manage("version", script=SERVE, exit_code=1)
    assert "it works with better_compute >=99" in result.err
    assert host.ledger() == before


PATCHES = """
from django.apps import AppConfig

class Patcher(AppConfig):
    name = "patcher"
    def ready(self):
        from django.core.management.commands import makemigrations, migrate
        from django.db.migrations.autodetector import MigrationAutodetector
        class Detector(MigrationAutodetector):
            pass
        makemigrations.Command.autodetector = migrate.Command.autodetector = Detector
"""


def test_an_app_that_takes_the_autodetector_away_from_triggers_is_told(host: Host) -> None:
    folder = host.root / "patcher"
    folder.mkdir()
    folder.joinpath("__init__.py").write_text("")
    folder.joinpath("apps.py").write_text(PATCHES)
    assert "W076" not in host.manage("check").err
    host.apps.append("patcher")
    host.configure()
    err = host.manage("check").err
    assert "compute.W076" in err
    assert "makemigrations uses patcher.apps." in err
    assert "Put the app that replaces it before 'pgtrigger' in INSTALLED_APPS, or remove it." in err


def test_an_app_with_a_makemigrations_of_its_own_is_told(host: Host) -> None:
    folder = host.root / "staged" / "management" / "commands"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        package.joinpath("__init__.py").write_text("")
    folder.joinpath("makemigrations.py").write_text(
        "from django.core.management.commands.makemigrations import Command\n"
    )
    host.apps.append("staged")
    host.configure()
    err = host.manage("check").err
    assert "compute.W076" in err
    assert "`manage.py makemigrations` is the command of 'staged'" in err


def test_migrations_that_are_turned_off_are_refused(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.more = "MIGRATION_MODULES = {'plg_acme': None}"
    host.configure()
    err = host.manage("compute_migrate", exit_code=2).err
    assert "compute.E016" in err
    assert "run tests without --nomigrations" in err


def unreachable(host: Host, path: Path) -> None:
    """Point the host at a server that is not there."""
    host.databases["default"] = {**host.default_database, "HOST": str(path), "PORT": "1"}
    host.configure()


def test_a_server_that_is_away_is_said_in_one_line(host: Host, tmp_path: Path) -> None:
    unreachable(host, tmp_path)
    err = host.manage("compute_migrate", exit_code=2).err
    assert "Database 'default' cannot be reached: " in err
    assert len(err.strip().splitlines()) == 1
