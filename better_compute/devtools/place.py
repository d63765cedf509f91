"""A directory under ``.dev/`` that one running installation holds: its lock, its secrets, what it started."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import psutil

#: Set to put the state somewhere else than ``.dev/`` below the working directory.
DIRECTORY_VARIABLE = "COMPUTE_DEV_DIR"
#: How long leftovers of a crashed start may take to stop, in seconds.
LEFTOVER_SECONDS = 10.0


class PlaceTaken(Exception):
    """Another running installation holds the directory."""


class Place:
    """One installation's state; held until :meth:`release` or the death of this process.

    Parameters
    ----------
    directory
        Created when missing, readable by its owner only but open to pass through (a database server that
        runs as another user lives below it).
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._lock = self._acquire()

    @classmethod
    def claim(cls, name: str, *, slots: int = 1) -> Place:
        """Hold ``<name>`` below the state directory, or ``<name>-2`` and so on up to ``slots``.

        Raises
        ------
        PlaceTaken
            When every slot is held by a running process.
        """
        root = Path(os.environ.get(DIRECTORY_VARIABLE) or ".dev")
        for slot in range(1, slots + 1):
            try:
                return cls(root / (name if slot == 1 else f"{name}-{slot}"))
            except PlaceTaken:
                if slot == slots:
                    raise
        raise ValueError(f"slots must be at least 1, not {slots}")

    def _acquire(self) -> IO[str]:
        handle = (self.directory / "lock").open("a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            handle.close()
            raise PlaceTaken(
                f"{self.directory} is in use by process {holder}. Stop that one (Ctrl-C), or set "
                f"{DIRECTORY_VARIABLE} to another directory."
            ) from None
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        return handle

    def release(self) -> None:
        """Let another installation have the directory."""
        self._lock.close()

    def read(self, name: str) -> dict[str, Any]:
        """The JSON object in file ``name``; empty when there is none or it was cut short by a crash."""
        try:
            value = json.loads((self.directory / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return value if isinstance(value, dict) else {}

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Replace file ``name`` as a whole; only the owner may read it."""
        new = self.directory / f"{name}.new"
        new.touch(mode=0o600)
        new.write_text(json.dumps(value, indent=1), encoding="utf-8")
        new.replace(self.directory / name)

    def remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """The value that ``make`` gave when ``name`` was first asked for, in any start of this place."""
        known = self.read("remembered.json")
        if name not in known:
            known[name] = make()
            self.write("remembered.json", known)
        return known[name]

    def secret(self, name: str) -> str:
        """A random secret of this place, the same in every start."""
        return str(self.remembered(f"secret:{name}", lambda: secrets.token_urlsafe(24)))

    def record(self, name: str, pid: int) -> None:
        """Remember that process ``pid``, leader of its own session, is ours to stop."""
        started = self.read("started.json")
        started[name] = {"pid": pid, "created": psutil.Process(pid).create_time()}
        self.write("started.json", started)

    def forget(self, name: str) -> None:
        """The process called ``name`` has ended."""
        started = self.read("started.json")
        if started.pop(name, None) is not None:
            self.write("started.json", started)

    def end_leftovers(self) -> list[str]:
        """Stop what a start that crashed left running, the last started first; returns their names.

        Only while this place is held, so nothing recorded can belong to a living installation.
        """
        started = self.read("started.json")
        ended = []
        for name, entry in reversed(started.items()):
            found = _session(int(entry["pid"]), float(entry["created"]))
            if found:
                _end(found)
                ended.append(name)
        self.write("started.json", {})
        return ended


def _session(leader: int, created: float) -> list[psutil.Process]:
    """The living processes of the session that the recorded process led."""
    members = []
    for process in psutil.process_iter():
        try:
            # A process id is not given out again while a session bears it.
            if process.pid == leader and abs(process.create_time() - created) > 1:
                return []
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process)
        except (psutil.Error, ProcessLookupError, PermissionError):
            continue
    return members


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        # SIGINT is PostgreSQL's fast shutdown; every other process here ends on it as well.
        process.send_signal(signal.SIGINT)
    _, alive = psutil.wait_procs(processes, LEFTOVER_SECONDS)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, LEFTOVER_SECONDS)
