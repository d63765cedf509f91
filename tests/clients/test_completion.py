"""The tab key in a real bash on a real terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from better_compute.client import cli
from tests.clients.conftest import Running

ROOT = Path(__file__).parents[2]
PROMPT = "ready> "
#: Seconds to wait for what the terminal shows.
PATIENCE = 60.0

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.needs("bash")]


class Terminal:
    """A bash on a terminal."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._reading, writing = pty.openpty()
        command = ["bash", "--noprofile", "--norc", "-i"]
        self._bash = subprocess.Popen(
            command, env=environment, stdin=writing, stdout=writing, stderr=writing, start_new_session=True
        )
        os.close(writing)

    def type(self, text: str, *, until: str) -> str:
        """Type it, and read until the terminal shows something."""
        os.write(self._reading, text.encode())
        shown, ends = "", time.monotonic() + PATIENCE
        while until not in shown:
            assert time.monotonic() < ends, f"{until!r} did not come: {shown!r}"
            if select.select([self._reading], [], [], 1)[0]:
                shown += os.read(self._reading, 65536).decode()
        return shown

    def close(self) -> None:
        """Leave."""
        self._bash.kill()
        self._bash.wait()
        os.close(self._reading)


@pytest.fixture
def terminal(running: Running, tmp_path: Path) -> Iterator[Terminal]:
    program = tmp_path / "better-compute"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m better_compute.client.cli "$@"\n')
    program.chmod(0o755)
    made = Terminal(
        {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TERM": "dumb",
            "PS1": PROMPT,
            "INPUTRC": "/dev/null",
            cli.URL: running.url,
            cli.TOKEN: running.token,
        }
    )
    made.type('eval "$(better-compute --completion bash)"; echo done-$?\n', until="done-0")
    yield made
    made.close()


def test_tab_completes_methods_fields_and_options(terminal: Terminal) -> None:
    terminal.type("better-compute work.req\t", until="work.requeue ")
    # A field is followed by its value, so there is no space behind it.
    assert terminal.type("ki\t", until="kind=").endswith("kind=")
    terminal.type("tenancy --dr\t", until="--dry-run ")
