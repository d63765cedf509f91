"""``manage.py doctor`` and ``manage.py compute``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from better_compute import CliCommand, ComputeError, ErrorCode, Finding, registry
from tests.hosting.conftest import fresh_database as fresh_database  # a fixture
from tests.registry.specs import module, plugin

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("made_up_modules")]


def checked(*found: Finding) -> Any:
    return module(path="tests.doctor", self_check=lambda ctx: list(found))


def finding(severity: Any, message: str = "A thing is off.") -> Finding:
    return Finding(check=f"gadgets.{severity}", severity=severity, message=message, fix="Put it right.", count=3)


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output of ``manage.py``, in this process."""
    out = StringIO()
    try:
        call_command(*arguments, stdout=out, no_color=True)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_json_is_the_report_in_camel_case() -> None:
    with registry.override(checked(finding("warning"))):
        code, out = run("doctor", "--format", "json")
    assert code == 0
    assert json.loads(out) == {
        "ok": True,
        "findings": [
            {
                "check": "gadgets.warning",
                "severity": "warning",
                "message": "A thing is off.",
                "fix": "Put it right.",
                "count": 3,
            }
        ],
    }


@pytest.mark.parametrize(
    ("severity", "level", "code"),
    [
        ("error", "error", 1),
        ("error", "info", 1),
        ("warning", "error", 0),
        ("warning", "warning", 1),
        ("info", "warning", 0),
        ("info", "info", 1),
        ("error", "never", 0),
    ],
)
def test_the_exit_code_follows_the_fail_level(severity: str, level: str, code: int) -> None:
    with registry.override(checked(finding(severity))):
        assert run("doctor", "--fail-level", level)[0] == code


def test_the_table_puts_the_worst_first_and_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with registry.override(checked(finding("info"), finding("error", "Many words of trouble " * 8))):
        code, out = run("doctor")
    lines = out.splitlines()
    assert code == 1
    assert max(map(len, lines)) <= 80
    assert [line.split()[:2] for line in lines if line[:1].isupper()] == [
        ["ERROR", "gadgets.error"],
        ["INFO", "gadgets.info"],
    ]
    assert "         fix: Put it right." in lines
    assert lines[-1] == "not ok: 1 error, 1 info"


def test_severities_are_coloured() -> None:
    out = StringIO()
    with registry.override(checked(finding("warning"))):
        call_command("doctor", stdout=out, force_color=True)
    assert "\x1b[" in out.getvalue()


def test_a_module_that_is_not_hosted_is_wrong_usage() -> None:
    with registry.override(checked()), pytest.raises(CommandError, match="No hosted module is named 'zoo'") as refused:
        run("doctor", "--module", "zoo")
    assert refused.value.returncode == 2


def test_doctor_says_that_a_database_is_not_migrated(
    process_env: dict[str, str], fresh_database: Callable[[], str]
) -> None:
    env = {**process_env, "DATABASE_URL": fresh_database()}
    ended = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--format", "json"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    [found] = json.loads(ended.stdout)["findings"]
    assert (found["check"], found["fix"]) == ("migrations.pending", "Run `manage.py compute_migrate`.")


def command(name: str = "prune", **fields: Any) -> CliCommand:
    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--keep", type=int, default=1)

    def go(ctx: Any, options: argparse.Namespace) -> int:
        return int(options.keep)

    return CliCommand(**{"name": name, "summary": f"{name} widgets.", "run": go, "arguments": arguments, **fields})


def test_without_arguments_the_commands_are_listed_in_hosted_order() -> None:
    with registry.override(
        plugin(commands=(command(),)), module(commands=(command("grow"),)), module("core", commands=(command("pause"),))
    ):
        assert run("compute") == (
            0,
            "pause         pause widgets.\ngadgets:grow  grow widgets.\nacme:prune    prune widgets.\n",
        )


def test_without_commands_the_listing_says_so() -> None:
    with registry.override(module()):
        assert run("compute") == (0, "No hosted module brings a command.\n")


@pytest.mark.parametrize(("arguments", "code"), [(["--keep", "0"], 0), (["--keep", "7"], 7), ([], 1)])
def test_a_command_gets_its_own_arguments_and_gives_the_exit_code(arguments: list[str], code: int) -> None:
    with registry.override(plugin(commands=(command(),))):
        assert run("compute", "acme:prune", *arguments)[0] == code


def test_a_command_gets_its_modules_context() -> None:
    seen: list[str] = []
    spec = plugin(commands=(command(run=lambda ctx, options: seen.append(ctx.module)),))
    with registry.override(spec):
        assert run("compute", "acme:prune")[0] == 0
    assert seen == ["acme"]


def test_a_command_of_the_core_needs_no_module_name() -> None:
    with registry.override(module("core", commands=(command("pause"),))):
        assert run("compute", "pause", "--keep", "3")[0] == 3
        assert run("compute", "core:pause", "--keep", "3")[0] == 3


def test_an_unknown_command_names_those_that_come_near() -> None:
    with registry.override(plugin(commands=(command(),))), pytest.raises(CommandError) as refused:
        run("compute", "acme:prun")
    assert str(refused.value) == "No hosted module brings the command 'acme:prun'. Did you mean acme:prune?"
    assert refused.value.returncode == 2


def test_a_refusal_of_a_command_is_one_line_and_exit_code_1() -> None:
    def refuse(ctx: Any, options: Any) -> None:
        raise ComputeError(ErrorCode.IN_USE, "Widgets are in use.", mend="Wait.")

    with registry.override(plugin(commands=(command(run=refuse),))), pytest.raises(CommandError) as refused:
        run("compute", "acme:prune")
    assert (str(refused.value), refused.value.returncode) == ("IN_USE: Widgets are in use. Wait.", 1)


def test_wrong_arguments_of_a_command_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with registry.override(plugin(commands=(command(),))):
        assert run("compute", "acme:prune", "--keep", "many")[0] == 2
    assert "manage.py compute acme:prune" in capsys.readouterr().err
