"""The wheel, in an empty environment and an empty Django project: what an editable install would hide."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from better_compute.devtools.ports import free_port

from .processes import clean_environment, run

SETTINGS = """
import better_compute
from example_settings import database

INSTALLED_APPS = [*better_compute.installed_apps(), *INSTALLED_APPS, "rest_framework", "pgtrigger"]
DATABASES = {"default": database}
ALLOWED_HOSTS = ["127.0.0.1"]
"""
URLS = """
from better_compute import ComputeRouter
from django.urls import include

urlpatterns.append(path("api/compute/", include(ComputeRouter().urls)))
"""

pytestmark = pytest.mark.slow


def test_the_wheel_serves_an_empty_project(tmp_path: Path, wheel: Path, database: dict[str, str]) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    run(python, "-m", "django", "startproject", "host", cwd=tmp_path)
    project = tmp_path / "host"
    (project / "example_settings.py").write_text(f"database = {database!r}\n")
    with (project / "host" / "settings.py").open("a") as settings:
        settings.write(SETTINGS)
    with (project / "host" / "urls.py").open("a") as urls:
        urls.write(URLS)

    run(python, "manage.py", "compute_migrate", cwd=project)
    report = json.loads(run(python, "manage.py", "doctor", "--format", "json", cwd=project))
    assert report["ok"] is True, report
    assert run(python, "manage.py", "makemigrations", "--check", "--dry-run", cwd=project)

    run(
        *(python, "manage.py", "createsuperuser", "--noinput", "--username", "root", "--email", "root@localhost"),
        cwd=project,
        DJANGO_SUPERUSER_PASSWORD=secrets.token_hex(8),
    )
    made = run(
        *(python, "manage.py", "compute_token", "create", "--user", "root", "--installation", "--label", "smoke"),
        cwd=project,
    )
    found = re.search(r"bct_[A-Za-z0-9_-]{43}", made)
    assert found, made
    assert call(python, project, "system/version", found[0])["core"] in wheel.name


def call(python: Path, project: Path, method: str, token: str) -> dict[str, str]:
    """The answer of one call over HTTP to the project's own development server."""
    port = free_port()
    server = subprocess.Popen(
        [str(python), "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=clean_environment(),
    )
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/compute/{method}",
        data=b"{}",
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
                    answer: dict[str, str] = json.load(response)
                    return answer
            except urllib.error.HTTPError as refusal:
                raise AssertionError(f"{refusal.code} {refusal.read().decode()}") from None
            except urllib.error.URLError:
                assert server.poll() is None, server.communicate()[0]
                assert time.monotonic() < deadline, "the development server does not answer"
                time.sleep(0.1)
    finally:
        server.terminate()
        server.communicate()
