"""The worker processes: always the same number of them, whatever happens to each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.chaos.arena.reconcilers import REFUSED

ROOT = Path(__file__).resolve().parents[2]


class Slot:
    """A place in which one worker process after the other runs."""

    def __init__(self, number: int, env: Mapping[str, str], logs: Path) -> None:
        self.number = number
        self._env = dict(env)
        self.log = logs / f"worker-{number}.log"
        self._file = self.log.open("a")
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._wakes_at: float | None = None

    @property
    def pid(self) -> int:
        """Of the process that runs; 0 when none does."""
        return self._process.pid if self._process is not None and self._process.poll() is None else 0

    @property
    def stopped(self) -> bool:
        """Whether it is frozen."""
        return self._wakes_at is not None

    def keep(self) -> None:
        """Start a process when none runs, and wake one whose time has come; call it often."""
        if self._wakes_at is not None and time.monotonic() >= self._wakes_at:
            self.wake()
        if not self.pid:
            self.starts += 1
            self._wakes_at = None
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "celery", "-A", "example_project", "worker", "-l", "INFO", "-c", "1"),
                    *("-P", "threads", "--without-gossip", "--without-mingle"),
                ],
                env=self._env,
                cwd=ROOT,
                stdout=self._file,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._wakes_at = None

    def terminate(self) -> None:
        """Ask it to end."""
        if self.pid and self._process is not None:
            self.wake()
            self._process.send_signal(signal.SIGTERM)

    def freeze(self, seconds: float) -> None:
        """Stop it in its tracks for ``seconds``."""
        if self.pid and not self.stopped:
            os.kill(self.pid, signal.SIGSTOP)
            self._wakes_at = time.monotonic() + seconds

    def wake(self) -> None:
        """Let it go on."""
        self._wakes_at = None
        if self.pid:
            os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """For good: with SIGTERM, and when that does not help with SIGKILL."""
        self.terminate()
        if self._process is not None:
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        self._file.close()

    def refusals(self) -> int:
        """How often its processes said that the fence refused them."""
        return self.log.read_text(errors="replace").count(REFUSED)
