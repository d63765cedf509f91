"""``manage.py compute_dev``, a whole installation in a place of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from better_compute.devtools import plan, running
from better_compute.devtools.installation import how_to_speak_to_it
from better_compute.devtools.place import Place
from better_compute.devtools.ports import PortRefused, free_port
from better_compute.devtools.supervisor import Service, Task

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = 120.0


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    left_out = ("DATABASE_URL", "CELERY_BROKER_URL", "COMPUTE_APP_ROLE", "OWNER_DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    yield {**kept, "COMPUTE_DEV_DIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    for link in tmp_path.glob("*/elsewhere"):
        shutil.rmtree(link.readlink())


def compute_dev(environment: dict[str, str], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(REPOSITORY / "manage.py"), "compute_dev", *words],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def lines_until(process: subprocess.Popen[str], words: str) -> list[str]:
    seen = []
    assert process.stdout is not None
    for line in process.stdout:
        seen.append(line)
        if words in line:
            return seen
    raise AssertionError("".join(seen))


@pytest.fixture
def installation(environment: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    process = compute_dev(environment)
    try:
        yield process, lines_until(process, "Ctrl-C stops everything.")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)


@pytest.mark.slow
def test_ctrl_c_stops_all_of_it_and_a_second_start_goes_on_from_there(
    installation: tuple[subprocess.Popen[str], list[str]], environment: dict[str, str]
) -> None:
    process, seen = installation
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 4, children
    password = re.search(r"password (\S+)", "".join(seen))
    assert password

    beside = [sys.executable, str(REPOSITORY / "manage.py"), "doctor", "--format", "json"]
    doctor = subprocess.run(beside, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert json.loads(doctor.stdout)["ok"], doctor.stderr

    refused, _ = compute_dev(environment).communicate(timeout=SECONDS)
    assert f"is in use by process {process.pid}. Stop that one (Ctrl-C)" in refused

    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, rest
    assert rest.rstrip().endswith("everything is stopped")
    assert not [child for child in children if child.is_running()]
    assert not (Path(environment["COMPUTE_DEV_DIR"]) / "demo" / running.ENVIRONMENT_FILE).exists()

    again = compute_dev(environment)
    seen = lines_until(again, "Ctrl-C stops everything.")
    assert "  migrate | Nothing is pending.\n" in seen
    assert password[0] in "".join(seen)
    again.send_signal(signal.SIGTERM)
    again.communicate(timeout=SECONDS)
    assert again.returncode == 0


@pytest.mark.slow
def test_the_main_job_is_seen_over_http_and_everything_stops(environment: dict[str, str]) -> None:
    process = compute_dev(environment, "--once", "example_project.demo")
    seen, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, seen
    steps = [line for line in seen.splitlines() if line.startswith(("ok ", "FAIL"))]
    assert len(steps) >= 11, seen
    assert not [line for line in steps if line.startswith("FAIL")]


def test_servers_that_the_environment_names_are_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://someone@db.example/compute")
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://broker.example/0")
    place = Place(tmp_path / "place")
    project = plan.Project(REPOSITORY / "manage.py", "example_project.wsgi:application", "example_project")
    laid_out = plan.make(project, place, 0, print)
    steps: list[Service | Task] = [make() for make in laid_out.steps]
    assert [step.name for step in steps] == ["migrate", "seed", "api", "worker"]
    assert laid_out.driver_env()["DATABASE_URL"] == "postgresql://someone@db.example/compute"
    place.release()


def test_what_runs_beside_starts_before_the_api_and_everybody_is_told_its_address(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    beside = {"identity": "example_project.identity_provider"}
    project = plan.Project(
        REPOSITORY / "manage.py", "example_project.wsgi:application", "example_project", beside=beside
    )
    laid_out = plan.make(project, place, 0, print)
    *_, seed, companion, api, worker = laid_out.steps
    made = companion()
    assert isinstance(made, Service)
    port = made.argv[-1]
    assert made.argv[1:] == ["-m", "example_project.identity_provider", port]
    for step in (seed(), made, api(), worker()):
        assert step.env is not None
        assert step.env["COMPUTE_DEV_IDENTITY_URL"] == f"http://127.0.0.1:{port}"
    assert laid_out.driver_env()["COMPUTE_DEV_IDENTITY_URL"].endswith(port)
    place.release()


def test_a_port_that_is_asked_for_is_the_port_served(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    project = plan.Project(REPOSITORY / "manage.py", "example_project.wsgi:application", "example_project")
    port = free_port()
    assert plan.make(project, place, port, print).url() == f"http://127.0.0.1:{port}"
    place.release()


def test_two_starts_with_one_port_are_told_of_each_other_before_either_serves(tmp_path: Path) -> None:
    first, second = Place(tmp_path / "first"), Place(tmp_path / "second")
    project = plan.Project(REPOSITORY / "manage.py", "example_project.wsgi:application", "example_project")
    port = free_port()
    plan.make(project, first, port, print)
    with pytest.raises(PortRefused, match=f"port {port} is in use"):
        plan.make(project, second, port, print)
    first.release()
    plan.make(project, second, port, print)
    second.release()


def test_a_port_in_use_is_refused_before_anything_starts(environment: dict[str, str]) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        said, _ = compute_dev(environment, "--port", str(port)).communicate(timeout=SECONDS)
    assert said.startswith(f"CommandError: port {port} is in use by process {os.getpid()} (")
    assert said.endswith("); give another PORT, or PORT=0 for a free one.\n")
    assert said.count("\n") == 1
    assert sorted(path.name for path in Path(environment["COMPUTE_DEV_DIR"]).glob("demo/*")) == ["lock", "started.json"]


def test_without_the_dev_extra_its_name_is_told(environment: dict[str, str]) -> None:
    code = (
        "import os, sys; sys.modules['psutil'] = None; "
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'example_project.settings'; "
        "from django.core.management import execute_from_command_line as run; run(['manage.py', 'compute_dev'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert ran.stderr == "CommandError: compute_dev needs psutil: pip install 'better-compute[dev]'.\n"


@pytest.mark.slow
def test_ctrl_c_while_the_api_starts_does_not_wait_for_it(environment: dict[str, str]) -> None:
    process = compute_dev(environment)
    lines_until(process, "Starting granian")
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, rest
    assert "was killed" not in rest
    assert rest.rstrip().endswith("everything is stopped")


def test_another_shell_is_told_what_to_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "compute_dev"])
    monkeypatch.setattr(running, "asked", True)
    monkeypatch.delenv("COMPUTE_DEV_DIR", raising=False)
    assert how_to_speak_to_it(tmp_path)[0] == f"In another shell, in {Path.cwd()}:"
    monkeypatch.setenv("COMPUTE_DEV_DIR", "some where")
    first, export, command = how_to_speak_to_it(tmp_path / "some where")
    assert (first, export) == ("In another shell, first:", f"  export COMPUTE_DEV_DIR='{tmp_path}/some where'")
    assert command.endswith("manage.py doctor   (and every other command) speaks to it.")
    monkeypatch.setattr(running, "asked", False)
    assert "  running.adopt(sys.argv[1:2])" in how_to_speak_to_it(tmp_path)


def test_a_port_that_is_none_is_refused_before_anything_starts(environment: dict[str, str]) -> None:
    said, _ = compute_dev(environment, "--port", "99999").communicate(timeout=SECONDS)
    assert "'99999' is no port; give a number up to 65535, or 0 for a free one" in said
    assert not list(Path(environment["COMPUTE_DEV_DIR"]).iterdir())
