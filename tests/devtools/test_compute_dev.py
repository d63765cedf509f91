"""``manage.py compute_dev``, a whole installation in a place of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from better_compute.devtools import plan, running
from better_compute.devtools.place import Place
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
    assert plan.make(project, place, 8123, print).url() == "http://127.0.0.1:8123"
    place.release()


def test_a_port_that_is_none_is_refused_before_anything_starts(environment: dict[str, str]) -> None:
    said, _ = compute_dev(environment, "--port", "99999").communicate(timeout=SECONDS)
    assert "'99999' is no port; give a number up to 65535, or 0 for a free one" in said
    assert not list(Path(environment["COMPUTE_DEV_DIR"]).iterdir())
