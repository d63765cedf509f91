"""The tab key in a real bash, zsh and fish on a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
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

#: What a terminal is told besides text: colours, titles, where the cursor is.
STEERING = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|\([A-Z])")

pytestmark = pytest.mark.django_db(transaction=True)

#: How each is started without a configuration, and takes the completion that it is given.
SHELLS = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], 'eval "$(better-compute --completion bash)"; echo done-$?'),
    "zsh": (["zsh", "-f", "-i"], 'eval "$(better-compute --completion zsh)"; echo done-$?'),
    "fish": (["fish", "--no-config", "-i"], "better-compute --completion fish | source; echo done-$status"),
}


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._reading, writing = pty.openpty()
        self._shell = subprocess.Popen(
            command,
            env=environment,
            stdin=writing,
            stdout=writing,
            stderr=writing,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(writing)
        fcntl.ioctl(
            self._reading,
            termios.TIOCSWINSZ,
            (50).to_bytes(2, sys.byteorder) + (200).to_bytes(2, sys.byteorder) + bytes(4),
        )

    def type(self, text: str, *, until: str) -> str:
        """Type it, and read until the terminal shows something."""
        os.write(self._reading, text.encode())
        shown, ends = "", time.monotonic() + PATIENCE
        while until not in shown:
            assert time.monotonic() < ends, f"{until!r} did not come: {shown!r}"
            if select.select([self._reading], [], [], 1)[0]:
                shown = STEERING.sub("", shown + os.read(self._reading, 65536).decode(errors="replace"))
        return shown

    def close(self) -> None:
        """Leave."""
        self._shell.kill()
        self._shell.wait()
        os.close(self._reading)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in SHELLS])
def terminal(request: pytest.FixtureRequest, running: Running, tmp_path: Path) -> Iterator[Terminal]:
    program = tmp_path / "better-compute"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m better_compute.client.cli "$@"\n')
    program.chmod(0o755)
    command, completion = SHELLS[request.param]
    made = Terminal(
        command,
        {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "TERM": "dumb",
            "PS1": PROMPT,
            "INPUTRC": "/dev/null",
            cli.URL: running.url,
            cli.TOKEN: running.token,
        },
    )
    try:
        made.type(f"{completion}\r", until="done-0")
        yield made
    finally:
        made.close()


def test_tab_completes_methods_fields_and_options(terminal: Terminal) -> None:
    terminal.type("better-compute work.req\t", until="work.requeue ")
    terminal.type("ki\t", until="nd=")
    # A field is followed by its value, so there is no space behind it.
    terminal.type("tenancy --dr\t", until="--dry-run ")
    # Read back by the shell itself, which then says what stands in the line.
    said = terminal.type("\x01echo :\x05\r", until=":better-compute work.requeue kind=tenancy --dry-run\r\n")
    assert "kind= tenancy" not in said


def test_tab_completes_the_path_of_a_token_file(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "sesame-token").write_text("t")
    terminal.type(f"better-compute --token-file {tmp_path}/ses\t", until="sesame-token ")
