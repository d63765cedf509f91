"""How a module's author tests its migrations, in a project of its own with pytest-django."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.ledger.host import REPOSITORY, Host

CREATE = 'migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True, serialize=False))]),'
ADD = 'migrations.AddField("one", "kind", models.CharField(max_length=9, null=True)),'
FILL = (
    "migrations.RunPython(\n"
    '            lambda apps, editor: apps.get_model("plg_acme", "One").objects.update(kind="old"),\n'
    "            migrations.RunPython.noop,\n"
    "        ),"
)
MODELS = """
from django.db import models

class One(models.Model):
    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=9, null=True)
"""

TESTS = """
import pytest
from django.db import connection
from better_compute.contract.errors import ComputeError
from acme_app.models import One

pytestmark = pytest.mark.django_db(transaction=True)


def applied():
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, action FROM compute_migrations WHERE owner = 'acme' ORDER BY seq")
        return cursor.fetchall()


def test_rows_that_were_there_get_a_kind(module_at):
    old = module_at("acme", "0001_one").get_model("plg_acme", "One")
    assert [field.name for field in old._meta.fields] == ["id"]
    old.objects.create(id=1)
    new = module_at("acme", "0003_fill").get_model("plg_acme", "One")
    assert new.objects.get().kind == "old"
    assert applied()[-4:] == [
        ("acme/0003_fill", "reverted"), ("acme/0002_kind", "reverted"),
        ("acme/0002_kind", "applied"), ("acme/0003_fill", "applied"),
    ]


def test_a_test_may_end_before_the_last_migration(module_at):
    module_at("acme", None)


def test_the_next_one_finds_everything_applied_and_empty():
    assert not One.objects.exists()
    assert applied()[-1] == ("acme/0003_fill", "applied")


def test_names_that_are_not_there_are_refused(module_at):
    with pytest.raises(ComputeError, match="acme has no migration '0009_nine'; it has 0001_one, 0002_kind, 0003_fill"):
        module_at("acme", "0009_nine")
    with pytest.raises(ComputeError, match="Module 'nosuch' is not hosted here"):
        module_at("nosuch", None)
"""


def test_an_author_tests_a_migration_with_the_rows_it_finds(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=CREATE, m0002_kind=ADD, m0003_fill=FILL)
    folder.parent.joinpath("models.py").write_text(MODELS)
    host.root.joinpath("conftest.py").write_text('pytest_plugins = ["better_compute.testing.fixtures"]\n')
    host.root.joinpath("test_migrations.py").write_text(TESTS)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--ds", "settings"],
        cwd=host.root,
        env={**os.environ, "PYTHONPATH": f"{host.root}{os.pathsep}{REPOSITORY}", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout
