"""The Procfile and the unit files: what they name is started."""

from __future__ import annotations

import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from better_compute.devtools.child import Child
from better_compute.devtools.ports import free_port
from tests.engine.conftest import ask, eventually

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
UNITS = ROOT / "docs" / "units"
SERVERS = {"api", "stream"}


def procfile(port: int, stream_port: int) -> dict[str, list[str]]:
    lines = (UNITS / "Procfile").read_text().splitlines()
    found = {}
    for line in lines:
        name, _, command = line.partition(":")
        _, *arguments = shlex.split(command.replace("$PORT", str(port)).replace("$STREAM_PORT", str(stream_port)))
        found[name] = [sys.executable, *arguments]
    return found


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_what_the_procfile_names_starts(process_env: dict[str, str]) -> None:
    port, stream_port = free_port(), free_port()
    env = {**process_env, "DJANGO_SETTINGS_MODULE": "tests.engine.plant_settings", "C_FORCE_ROOT": "1"}
    # The settings stand beside the tests, the Celery app in the example project.
    children = {
        name: Child(
            command if name in SERVERS else [*command, "--app", "example_project"],
            env={**env, "DJANGO_SETTINGS_MODULE": "example_project.settings"} if name in SERVERS else env,
            cwd=ROOT,
        )
        for name, command in procfile(port, stream_port).items()
    }
    try:
        eventually(lambda: answers(port) and answers(stream_port), 60)
        eventually(
            lambda: {"controllers", "scheduler"} <= {role for (role,) in ask("SELECT role FROM compute_workers")}, 60
        )
        assert {name: child.exit_code for name, child in children.items()} == dict.fromkeys(children)
    finally:
        ended = {name: child.stop(seconds=20) for name, child in children.items()}
    assert all(ended.values()), ended


@pytest.mark.parametrize("unit", sorted(path.name for path in UNITS.glob("*.service")))
def test_a_unit_runs_a_command_that_exists(unit: str, process_env: dict[str, str]) -> None:
    text = (UNITS / unit).read_text()
    [line] = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    _, *arguments = shlex.split(line.partition("=")[2])
    told = subprocess.run(
        [sys.executable, *arguments, "--print"], env=process_env, cwd=ROOT, capture_output=True, text=True, check=True
    )
    [role] = [role for role in ("api", "stream", "all") if f"--roles {role} " in f"{line} "]
    assert {"api": "granian", "stream": "uvicorn", "all": "celery"}[role] in told.stdout
