"""The quickstart, typed from its first line to its last into an empty folder, with the built wheel."""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from better_compute.devtools.ports import free_port

from .page import File, Line, steps
from .processes import clean_environment

#: How long a server may take to start, or a worker to take a key, in seconds; far more than they need.
PATIENCE_SECONDS = 120
_TOKEN = re.compile(r"bct_[A-Za-z0-9_-]{43}")
_ADDRESS = re.compile(r"Listening at: (http://\S+)")

pytestmark = [pytest.mark.slow, pytest.mark.needs("bash"), pytest.mark.needs("curl")]


class Reader:
    """Does what the page says, with the reader's own addresses in the place of the page's."""

    def __init__(self, folder: Path, wheel: Path, database: dict[str, str], broker_url: str) -> None:
        self.folder = folder
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        self._database = database
        self._broker_url = broker_url
        self._said: dict[str, str] = {}
        self._typed_for = {
            "/path/to/better-compute": str(wheel),
            "python3 -m venv": f"{shlex.quote(sys.executable)} -m venv",
            # Nobody sits at the prompt for the password.
            "createsuperuser": "createsuperuser --noinput --email ops@localhost",
            "--roles api": f"--roles api --port {free_port()}",
        }

    def write(self, file: File) -> None:
        """A listing; the settings are appended, as the page says, with the reader's addresses."""
        path = self.folder / file.name
        if path.name == "settings.py":
            path.write_text(path.read_text(encoding="utf-8") + "\n" + self._addressed(file.text), encoding="utf-8")
        else:
            path.write_text(file.text, encoding="utf-8")

    def type(self, line: Line) -> None:
        """A line, which must end well and say what the page shows; a server is left running."""
        typed = line.typed
        for page, own in self._typed_for.items():
            typed = typed.replace(page, own)
        if "compute_serve" in typed:
            self._serve(typed)
            return
        if "curl" in typed:
            self._until("API", lambda said: "Started worker" in said)
        ran = subprocess.run(
            ["bash", "-e", "-c", self._in_shell(typed)],
            cwd=self.folder,
            env=clean_environment(DJANGO_SUPERUSER_PASSWORD=secrets.token_hex(8)),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert ran.returncode == 0, f"{typed}\n{ran.stdout}\n{ran.stderr}"
        if line.shown:
            assert ran.stdout.strip() == line.shown.strip(), ran.stderr
        if token := _TOKEN.search(ran.stdout):
            self._said["TOKEN"] = token[0]
        if "curl" in typed:
            self._until("worker", lambda said: "widgets of t1 are converged" in said)

    def _in_shell(self, typed: str) -> str:
        activate = ". .venv/bin/activate; " if (self.folder / ".venv").exists() else ""
        said = "".join(f"{name}={shlex.quote(value)}; " for name, value in self._said.items())
        return activate + said + typed

    def _serve(self, typed: str) -> None:
        name = "API" if "--roles api" in typed else "worker"
        with (self.folder / f"{name}.log").open("wb") as log:
            self.servers[name] = subprocess.Popen(
                ["bash", "-c", self._in_shell(f"exec {typed}")],
                cwd=self.folder,
                env=clean_environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _until(self, name: str, seen: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not seen(said := (self.folder / f"{name}.log").read_text(encoding="utf-8")):
            assert self.servers[name].poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.1)
        if address := _ADDRESS.search(said):
            self._said["API"] = address[1]

    def _addressed(self, settings: str) -> str:
        for name, value in self._database.items():
            settings, count = re.subn(rf'"{name}": ".*"', f'"{name}": "{value}"', settings)
            assert count == 1, f"the page's settings say nothing of {name}"
        settings, count = re.subn(
            r"^CELERY_BROKER_URL = .*", f"CELERY_BROKER_URL = {self._broker_url!r}", settings, flags=re.M
        )
        assert count == 1, "the page's settings say nothing of the broker"
        return settings


@pytest.fixture
def reader(tmp_path: Path, wheel: Path, database: dict[str, str], broker_url: str) -> Iterator[Reader]:
    reading = Reader(tmp_path, wheel, database, broker_url)
    yield reading
    for server in reading.servers.values():
        server.terminate()
    for server in reading.servers.values():
        server.wait(timeout=60)


def test_the_quickstart_leads_from_an_empty_folder_to_an_answered_call(reader: Reader) -> None:
    typed = 0
    for step in steps():
        if isinstance(step, File):
            reader.write(step)
        else:
            reader.type(step)
            typed += 1
    assert {"API", "worker"} == set(reader.servers)
    assert typed >= 13
