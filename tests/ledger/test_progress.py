"""What a run shows on a terminal, read from the other end of one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Iterator
from typing import IO

import pytest
from django.core.management.base import OutputWrapper
from django.db.migrations import Migration

from better_compute.management.migration_progress import MigrationProgress

FIRST, SECOND = Migration("0001_ledger", "compute"), Migration("0002_work", "compute")

#: Nothing that a run prints.
END = "\x03"


class Terminal:
    """A terminal of 40 columns: ``out`` is what a command writes to, ``screen()`` what stands on it."""

    def __init__(self) -> None:
        self.reading, writing = pty.openpty()
        fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
        self.file: IO[str] = os.fdopen(writing, "w")
        self.out = OutputWrapper(self.file)

    def screen(self) -> list[str]:
        """The lines as the escape sequences leave them."""
        # A terminal hands over what was written in pieces of its own; the mark tells that all of it has come.
        self.file.write(END)
        self.file.flush()
        text = ""
        while not text.endswith(END):
            text += os.read(self.reading, 65536).decode()
        text = text.removesuffix(END).replace("\r\n", "\n")
        return [re.split(r"\r\x1b\[K", line)[-1] for line in text.split("\n")]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    yield terminal
    terminal.file.close()
    os.close(terminal.reading)


def test_a_terminal_shows_a_line_with_its_duration_for_each_and_a_bar_below(terminal: Terminal) -> None:
    progress = MigrationProgress(terminal.out)
    progress("plan", None, 2)
    progress("apply_start", FIRST)
    progress("apply_success", FIRST)
    progress("apply_start", SECOND)
    done, bar = terminal.screen()
    assert re.fullmatch(r"core/0001_ledger \d\.\d{3} s", done)
    # Cut to the width of the terminal, for a wrapped line could not be taken back.
    assert bar == "[###############...............] 1/2 co"


def test_the_bar_is_gone_in_the_end(terminal: Terminal) -> None:
    progress = MigrationProgress(terminal.out)
    progress("plan", None, 1)
    progress("apply_start", FIRST)
    progress.close()
    terminal.out.write("CommandError: it failed")
    assert terminal.screen() == ["CommandError: it failed", ""]


def test_a_terminal_without_escape_sequences_gets_lines_only(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    progress = MigrationProgress(terminal.out)
    progress("plan", None, 1)
    progress("apply_start", FIRST)
    progress("apply_success", FIRST, True)
    progress.close()
    assert terminal.screen() == ["core/0001_ledger recorded without being run", ""]
