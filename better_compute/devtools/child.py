"""A child process that leads a session of its own, and whose last lines are kept."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from better_compute.devtools.account import Account

#: How many lines of output are kept for the report of a death.
TAIL_LINES = 30
#: How long the kernel may take to end what was killed, in seconds.
KILLED_SECONDS = 10.0


class Child:
    """A running process.

    It stands in its own session, so a terminal's Ctrl-C reaches only us, and stopping it reaches whatever
    it started itself.

    Parameters
    ----------
    argv
        The program and its arguments.
    account
        The operating system's user to run as; None for our own.
    on_line
        Called with every line of output, from a thread.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        account: Account | None = None,
        on_line: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._on_line = on_line
        self._process = subprocess.Popen(  # noqa: S603  (the program is ours or PostgreSQL's)
            argv,
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        self._reader = threading.Thread(target=self._read, name=f"output of {self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id, which is also the id of its session and group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._process.poll()

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for it to end; True when it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        # The rest of the output; a grandchild that holds the pipe open must not hold us.
        self._reader.join(1)
        return True

    def stop(self, *, with_signal: signal.Signals = signal.SIGTERM, seconds: float = 10.0) -> bool:
        """Ask it to end, and after ``seconds`` make it; then make whatever is left of its session.

        Returns
        -------
        bool
            True when it ended by itself within the time.
        """
        if self.exit_code is None:
            self._process.send_signal(with_signal)
        graceful = self.wait(seconds)
        self._kill_group()
        self.wait(KILLED_SECONDS)
        return graceful

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            # No process of the group is left (macOS answers EPERM for zombies).
            return

    def _read(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with stream:
            for line in stream:
                text = line.rstrip("\n")
                self.tail.append(text)
                self._on_line(text)
