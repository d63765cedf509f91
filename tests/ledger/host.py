"""A throwaway host project with a throwaway database, driven as an operator drives it: by ``manage.py``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.warm import Started, Warm

REPOSITORY = Path(__file__).resolve().parents[2]

SETTINGS = """
SECRET_KEY = "of a throwaway host"
USE_TZ = True
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = {apps!r}
DATABASES = {databases!r}
COMPUTE = {compute!r}
{more}
"""

APPS = """
from better_compute import ComputePlugin

class {title}(ComputePlugin):
    name = "{package}"
    id = "{name}"
"""

MIGRATION = """
from django.db import migrations, models
from better_compute import ComputeMigration, ComputeNow, RunSqlFile

class Migration(ComputeMigration):
    dependencies = {dependencies!r}
    operations = [
        {operations}
    ]
"""


def run_sql(forward: str, reverse: str | None = None) -> str:
    """Source of a RunSQL operation."""
    return f"migrations.RunSQL({forward!r}, {reverse!r}),"


def table(name: str) -> str:
    """Source of an operation that makes a table and can be reversed."""
    return run_sql(f"CREATE TABLE {name} (id bigint PRIMARY KEY)", f"DROP TABLE {name}")


@dataclass
class Host:
    """A project at ``root`` over the database called ``database``."""

    root: Path
    database: str
    server: dict[str, Any]
    warm: Warm
    apps: list[str] = field(
        default_factory=lambda: ["better_compute", "django.contrib.auth", "django.contrib.contenttypes", "pgtrigger"]
    )
    compute: dict[str, Any] = field(default_factory=dict)
    databases: dict[str, dict[str, Any]] = field(default_factory=dict)
    more: str = ""

    @property
    def default_database(self) -> dict[str, Any]:
        """Settings of the alias ``default``."""
        return {"ENGINE": "django.db.backends.postgresql", **self.server, "NAME": self.database}

    def configure(self) -> None:
        """Write the settings as they stand now."""
        databases = {"default": self.default_database, **self.databases}
        self.root.joinpath("settings.py").write_text(
            SETTINGS.format(apps=self.apps, databases=databases, compute=self.compute, more=self.more)
        )
        self.root.joinpath("urls.py").write_text("urlpatterns = []\n")

    def plugin(self, name: str, **migrations: str) -> Path:
        """Add a plugin whose migrations are given by name: the source of their operations."""
        package = f"{name.replace('-', '_')}_app"
        folder = self.root / package / "migrations"
        folder.mkdir(parents=True)
        folder.joinpath("__init__.py").write_text("")
        folder.parent.joinpath("__init__.py").write_text("__version__ = '3.1'\n")
        title = name.title().replace("-", "")
        folder.parent.joinpath("apps.py").write_text(APPS.format(title=title, package=package, name=name))
        self.apps.append(package)
        previous: list[tuple[str, str]] = []
        for migration, operations in migrations.items():
            self.migration(folder, migration.lstrip("m"), operations, previous)
            previous = [(f"plg_{name.replace('-', '_')}", migration.lstrip("m"))]
        self.configure()
        return folder

    def migration(self, folder: Path, name: str, operations: str, dependencies: Sequence[tuple[str, str]] = ()) -> Path:
        """Write one migration file."""
        path = folder / f"{name}.py"
        path.write_text(MIGRATION.format(dependencies=list(dependencies), operations=operations))
        return path

    def start(self, *arguments: str, script: str | None = None, **environment: str) -> Started:
        """Start ``manage.py`` with ``arguments``; ``script`` is Python that runs after setup and before it."""
        code = textwrap.dedent(script or "")
        runner = (
            f"import django, sys\ndjango.setup()\n{code}\n"
            f"from django.core.management import execute_from_command_line\n"
            f"execute_from_command_line(['manage.py', *{list(arguments)!r}])\n"
        )
        return self.warm.start(
            runner, self.root, [str(self.root), str(REPOSITORY)], {"DJANGO_SETTINGS_MODULE": "settings", **environment}
        )

    def manage(self, *arguments: str, script: str | None = None, exit_code: int | None = 0) -> Result:
        """Run ``manage.py`` to its end and check its exit code."""
        return finished(self.start(*arguments, script=script), exit_code)

    def connect(self, **overrides: Any) -> psycopg.Connection[Any]:
        """A connection of its own to the database, in autocommit."""
        return connect(self.server, overrides.pop("database", self.database), **overrides)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with self.connect() as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]

    def run(self, statement: str) -> None:
        """Run a statement as the owner."""
        with self.connect() as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def ledger(self, owner: str | None = None) -> list[tuple[str, str]]:
        """Names and actions in the order in which they were written."""
        rows = self.rows("SELECT owner, name, action FROM compute_migrations ORDER BY seq")
        return [(name, action) for each, name, action in rows if owner in (None, each)]

    def has_table(self, name: str) -> bool:
        """Whether the table exists."""
        return bool(self.rows(f"SELECT to_regclass('{name}') IS NOT NULL")[0][0])


@dataclass
class Result:
    """How a command ended."""

    exit_code: int
    out: str
    err: str

    def json(self) -> Any:
        """The answer of ``--format json``."""
        return json.loads(self.out)


def finished(process: Started, exit_code: int | None = 0) -> Result:
    """Wait for ``process`` and check its exit code (None: whatever it is)."""
    out, err = process.communicate(timeout=60)
    result = Result(process.returncode, out, err)
    if exit_code is not None:
        assert result.exit_code == exit_code, f"exit code {result.exit_code}, not {exit_code}\n{out}\n{err}"
    return result


def connect(server: dict[str, Any], database: str, **overrides: Any) -> psycopg.Connection[Any]:
    """A connection in autocommit to ``database`` of the server that the tests use."""
    names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}
    options = {names[key]: value for key, value in server.items() if key in names and value}
    return psycopg.connect(dbname=database, autocommit=True, **{**options, **overrides})
