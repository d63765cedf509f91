"""``startcomputemodule``: what it writes passes everything that its author will run, as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ledger.host import REPOSITORY, Host

PYPROJECT = """
[tool.ruff]
line-length = 120
[tool.ruff.lint]
select = ["B", "C4", "DJ", "E", "F", "I", "SIM", "TID", "UP", "PT", "RUF"]
ignore = ["RUF012", "TID252"]
[tool.mypy]
strict = true
plugins = ["mypy_django_plugin.main", "mypy_drf_plugin.main"]
exclude = ["/migrations/"]
[tool.django-stubs]
django_settings_module = "settings"
[tool.pytest.ini_options]
DJANGO_SETTINGS_MODULE = "settings"
filterwarnings = ["error"]
"""


def tool(host: Host, *argv: str) -> str:
    """Run a tool in the project and return what it said."""
    ran = subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=host.root,
        env={
            **{key: value for key, value in os.environ.items() if not key.startswith(("DJANGO_", "PYTEST_", "PG"))},
            "PYTHONPATH": f"{host.root}{os.pathsep}{REPOSITORY}",
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, f"{argv} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(params=["plugin", "module"])
def module(request: pytest.FixtureRequest, host: Host) -> Path:
    """The folder of a new module in a fresh project."""
    host.root.joinpath("pyproject.toml").write_text(PYPROJECT)
    plugin = ["--plugin"] if request.param == "plugin" else []
    out = host.manage("startcomputemodule", "demo_mod", *plugin).out
    assert "Add 'demo_mod' to INSTALLED_APPS" in out
    assert "  python -m pytest --ds=settings demo_mod\n" in out
    assert ("compute.W073" in out) is not bool(plugin)
    host.apps.append("demo_mod")
    host.configure()
    return host.root / "demo_mod"


def test_a_new_module_passes_checks_migrations_lint_and_advice(host: Host, module: Path) -> None:
    host.manage("check")
    host.manage("makemigrations", "--check", "--dry-run")
    assert host.manage("compute_check_migrations", "demo-mod").out == "Nothing to advise.\n"
    host.manage("compute_migrate")
    assert host.ledger("demo-mod") == [("demo-mod/0001_items", "applied")]
    # By ruff's own defaults, and by those of a project with longer lines and more rules.
    for isolated in ([], ["--isolated", "--extend-ignore", "RUF012"]):
        tool(host, "ruff", "check", "--no-cache", *isolated, str(module))
        tool(host, "ruff", "format", "--no-cache", "--check", *isolated[:1], str(module))


@pytest.fixture
def both(host: Host) -> Host:
    """A fresh project with a new module and a new plugin."""
    host.root.joinpath("pyproject.toml").write_text(PYPROJECT)
    host.manage("startcomputemodule", "demo_mod")
    host.manage("startcomputemodule", "demo_plugin", "--plugin")
    host.apps += ["demo_mod", "demo_plugin"]
    host.configure()
    return host


def test_new_modules_pass_their_own_tests_in_one_project(both: Host) -> None:
    # With no more than the command prints: the settings are named there.
    both.root.joinpath("pyproject.toml").unlink()
    options = ("-q", "-rA", "-p", "no:cacheprovider", "-W", "error")
    said = tool(both, "pytest", "--ds=settings", *options, "demo_mod", "demo_plugin")
    for module in ("demo_mod", "demo_plugin"):
        assert f"PASSED {module}/tests/" in said


@pytest.mark.slow
def test_new_modules_pass_strict_types(both: Host) -> None:
    # What mypy knows of Django and of the core is kept from run to run.
    cache = REPOSITORY / ".mypy_cache" / "new-module"
    assert "no issues found" in tool(both, "mypy", "--cache-dir", str(cache), "demo_mod", "demo_plugin")


def test_a_name_that_makes_no_id_is_refused(host: Host) -> None:
    for name in ("Demo", "1st", "démo", "-x"):
        result = host.manage("startcomputemodule", "--", name, exit_code=1)
        assert "is no name for a module" in result.err
        assert not host.root.joinpath(name).exists()


def test_a_name_that_is_taken_or_cannot_be_imported_is_refused(host: Host) -> None:
    host.plugin("acme")
    refusals = {
        "class": "'class' is a word of Python's own",
        "json": "'json' is a module of Python's own library",
        "django": "conflicts with the name of an existing",
        "a" * 65: "is 65 characters long, and a module's name at most 64",
        "core": "'core' is the name of a module that comes with the core",
        "site_boot": "'site-boot' is the name of a module that comes with the core",
        "compute": "The installed app 'better_compute' is called 'compute' already",
        "contenttypes": "The installed app 'django.contrib.contenttypes' is called 'contenttypes' already",
        "acme": "The installed app 'acme_app' is called 'acme' already",
        "acme_": "The installed app 'acme_app' is called ",
    }
    for name, text in refusals.items():
        for kind in ([], ["--plugin"]):
            if name in {"compute", "contenttypes"} and kind:
                # As a plugin its label is another one.
                continue
            assert text in host.manage("startcomputemodule", name, *kind, exit_code=1).err
            assert not host.root.joinpath(name).exists()


def test_a_module_is_never_written_over_another(host: Host) -> None:
    host.manage("startcomputemodule", "demo_mod")
    assert "conflicts with the name of an existing" in host.manage("startcomputemodule", "demo_mod", exit_code=1).err
