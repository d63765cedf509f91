"""Fifty modules with ten migrations each, written to a folder, to be migrated by Django alone and by us.

``python -m benchmarks.many_modules ours|django`` in a process of its own migrates the database of the environment
and prints how many seconds that took.
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


def migrate(who: str) -> float:
    """Migrate the empty database; seconds."""
    import django
    from django.core.management import call_command

    django.setup()
    from benchmarks.peers import django_migrate

    began = time.perf_counter()
    if who == "ours":
        call_command("compute_migrate", verbosity=0)
    else:
        options: dict[str, Any] = django_migrate.options()
        call_command(django_migrate.command(), **options)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(migrate(sys.argv[1]))
