"""Fifty modules with ten migrations each, written to a folder, to be migrated by Django alone and by us.

``python -m benchmarks.many_modules ours|django`` in a process of its own migrates the database of the environment
and prints how many seconds that took, and how many of CPU time it and its PostgreSQL process used.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

MODULES = 50
MIGRATIONS = 10
FOLDER = "BENCH_MODULES"

APPS = """
from better_compute import ComputePlugin


class Config(ComputePlugin):
    name = "bench_modules.m{module:02}"
    id = "m{module:02}"
"""
FIRST = """
from django.db import migrations, models
from better_compute import ComputeMigration


class Migration({base}):
    initial = True
    dependencies = {dependencies}
    operations = [
        migrations.CreateModel(
            name="Thing",
            fields=[("id", models.BigAutoField(primary_key=True, serialize=False)), ("c1", models.IntegerField())],
        )
    ]
"""
NEXT = """
from django.db import migrations, models
from better_compute import ComputeMigration


class Migration({base}):
    dependencies = {dependencies}
    operations = [migrations.AddField("thing", "c{number}", models.IntegerField(null=True))]
"""


def write(folder: Path) -> None:
    """Write the fifty packages below ``folder``."""
    root = folder / "bench_modules"
    root.mkdir()
    (root / "__init__.py").touch()
    for module in range(MODULES):
        package = root / f"m{module:02}"
        (package / "migrations").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "migrations" / "__init__.py").touch()
        (package / "apps.py").write_text(APPS.format(module=module))
        previous = [("compute", "__first__")]
        for number in range(1, MIGRATIONS + 1):
            template = FIRST if number == 1 else NEXT
            text = template.format(base="ComputeMigration", dependencies=previous, number=number)
            name = f"{number:04}_step"
            (package / "migrations" / f"{name}.py").write_text(text)
            previous = [(f"plg_m{module:02}", name)]


@contextmanager
def folder() -> Iterator[str]:
    """A folder with the packages, for the environment of the children."""
    with tempfile.TemporaryDirectory() as path:
        write(Path(path))
        yield path


def installed() -> list[str]:
    """What the settings add to INSTALLED_APPS when the folder is given."""
    if FOLDER not in os.environ:
        return []
    sys.path.insert(0, os.environ[FOLDER])
    return [f"bench_modules.m{module:02}" for module in range(MODULES)]


def migrate(who: str) -> tuple[float, float]:
    """Migrate the empty database; seconds that it took, and seconds of CPU time."""
    import django
    from django.core.management import call_command
    from django.db import connection

    django.setup()
    from benchmarks.peers import django_migrate

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        server = int(cursor.fetchone()[0])
    busy, began = time.process_time() + server_seconds(server), time.perf_counter()
    if who == "ours":
        compute_migrate()
    else:
        options: dict[str, Any] = django_migrate.options()
        call_command(django_migrate.command(), **options)
    return time.perf_counter() - began, time.process_time() + server_seconds(server) - busy


def compute_migrate() -> None:
    """Run the command as a shell does: call_command() would leave its system checks out."""
    from better_compute.management.commands.compute_migrate import Command

    command = Command()
    command.execute(**vars(command.create_parser("manage.py", "compute_migrate").parse_args(["--verbosity", "0"])))


def server_seconds(pid: int) -> float:
    """CPU time so far of the PostgreSQL process ``pid``; 0 when it is not on this machine."""
    try:
        process = psutil.Process(pid)
        if not process.name().startswith("postgres"):
            return 0.0
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


if __name__ == "__main__":
    print(*migrate(sys.argv[1]))
