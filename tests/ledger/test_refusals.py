"""A database or a role that is not as it must be is told in one line, with exit code 2, and nothing is changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.ledger.host import Host, connect, table

APP_ROLE = os.environ.get("COMPUTE_APP_ROLE", "bc_app")


def refused(host: Host) -> str:
    """The one line that compute_migrate says."""
    host.configure()
    err = host.manage("compute_migrate", exit_code=2).err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    return err


def with_options(host: Host, options: str) -> None:
    host.databases["default"] = {**host.default_database, "OPTIONS": {"options": options}}


@pytest.mark.usefixtures("from_nothing")
def test_a_role_that_may_only_read(host: Host) -> None:
    with_options(host, "-c default_transaction_read_only=on")
    err = refused(host)
    assert "Database 'default' refuses: ReadOnlySqlTransaction (SQLSTATE 25006): cannot execute CREATE TABLE" in err
    assert "default_transaction_read_only is off" in err


@pytest.mark.usefixtures("from_nothing")
def test_a_search_path_that_names_no_schema(host: Host) -> None:
    with_options(host, "-c search_path=nowhere")
    err = refused(host)
    assert "no schema has been selected to create in" in err
    assert "Create the schema, or let the role's search_path name one that is there." in err


@pytest.mark.usefixtures("from_nothing")
def test_a_role_that_may_create_nothing(host: Host) -> None:
    password = os.environ.get("COMPUTE_APP_PASSWORD", "")
    host.databases["default"] = {**host.default_database, "USER": APP_ROLE, "PASSWORD": password}
    err = refused(host)
    assert "permission denied for schema public" in err
    assert "Run it as the role that owns the tables" in err


def test_a_role_without_rights_on_what_was_migrated(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    password = os.environ.get("COMPUTE_APP_PASSWORD", "")
    host.databases["default"] = {**host.default_database, "USER": APP_ROLE, "PASSWORD": password}
    refused(host)
    assert not host.has_table("plg_acme_one")


@pytest.mark.usefixtures("from_nothing")
def test_a_table_of_the_ledgers_name_that_is_not_the_ledger(host: Host) -> None:
    host.run("CREATE TABLE compute_migrations (id int)")
    err = refused(host)
    assert "SQLSTATE 42703" in err
    assert "A table of that name is another program's" in err


@pytest.fixture
def latin(host: Host) -> Iterator[Host]:
    name = f"{host.database}_latin"
    with connect(host.server, "postgres") as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"  # type: ignore[arg-type]
        )
    yield replace(host, database=name)
    with connect(host.server, "postgres") as connection:
        connection.execute(f"DROP DATABASE {name}")  # type: ignore[arg-type]


def test_a_database_that_cannot_hold_every_script(latin: Host) -> None:
    assert "Database 'default' is encoded in LATIN1" in refused(latin)
    assert not latin.has_table("compute_migrations")


#: Commands that read what is hosted, with the exit code of a refusal.
READERS = [
    (("compute_migrate",), 2),
    (("compute_migrate", "--check"), 2),
    (("migrate",), 1),
    (("compute_module", "list"), 2),
    (("compute_check_migrations",), 2),
    (("compute_openapi",), 2),
    (("compute_client", "python"), 2),
    (("authz_matrix",), 2),
    (("check",), 1),
    (("showmigrations",), 1),
    (("makemigrations", "--check"), 1),
]


@pytest.mark.parametrize(("command", "code"), READERS, ids=["-".join(command) for command, _ in READERS])
def test_a_migration_that_is_no_python_is_told_with_file_and_line_at_every_door(
    host: Host, command: tuple[str, ...], code: int
) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    folder.joinpath("0002_two.py").write_text("x = 1\nclass Migration(:\n")
    err = host.manage(*command, exit_code=code).err
    assert "Traceback" not in err
    assert (
        "(compute.E007) Plugin 'acme': importing acme_app.migrations.0002_two raised SyntaxError: invalid syntax "
        f"({folder}/0002_two.py:2)."
    ) in err
    assert not host.has_table("plg_acme_one")


@pytest.mark.parametrize(("command", "code"), READERS, ids=["-".join(command) for command, _ in READERS])
def test_two_plugins_of_one_id_are_told_with_both_apps_at_every_door(
    host: Host, command: tuple[str, ...], code: int
) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    copy = host.root / "copied_app"
    shutil.copytree(host.root / "acme_app", copy)
    apps = copy / "apps.py"
    apps.write_text(apps.read_text().replace("acme_app", "copied_app"))
    host.apps.append("copied_app")
    host.configure()
    err = host.manage(*command, exit_code=code).err
    assert "Traceback" not in err
    assert "(compute.E004) Plugin 'acme': its id 'acme' is also the id of plugin 'acme' (acme_app)." in err
    assert not host.has_table("plg_acme_one")
