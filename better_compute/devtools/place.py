"""A directory under ``.dev/`` that one running installation holds: its lock, its secrets, what it started."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

import psutil

#: Set to put the state somewhere else than ``.dev/`` below the working directory.
DIRECTORY_VARIABLE = "COMPUTE_DEV_DIR"
#: How long leftovers of a crashed start may take to stop, in seconds.
LEFTOVER_SECONDS = 10.0
#: What every start of a place must find again: passwords and ports.
MEMORY_FILE = "remembered.json"


class PlaceRefused(RuntimeError):
    """Nothing can run in the directory; the message holds the mend."""


class PlaceTaken(PlaceRefused):
    """Another running installation holds the directory."""


class Closable(Protocol):
    """What :meth:`Place.keep` keeps."""

    def close(self) -> None:
        """Give it back."""


class Place:
    """One installation's state; held until :meth:`release` or the death of this process.

    Parameters
    ----------
    directory
        Created when missing, readable by its owner only but open to pass through (a database server that
        runs as another user lives below it).

    Raises
    ------
    PlaceRefused
        When another installation holds it, it is not ours to write, or what it must remember is broken.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        try:
            self.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
            self._lock = self._acquire()
        except PermissionError as error:
            raise PlaceRefused(
                f"{error.filename} is not yours to write. Run as its owner, or set {DIRECTORY_VARIABLE} to a "
                "directory of your own."
            ) from None
        self._kept: list[Closable] = []
        try:
            self._memory()
        except PlaceRefused:
            self.release()
            raise

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
        """Give back what is kept, and let another installation have the directory."""
        for kept in self._kept:
            kept.close()
        self._kept.clear()
        self._lock.close()

    def keep(self, kept: Closable) -> None:
        """Close ``kept`` when the place is released."""
        self._kept.append(kept)

    def read(self, name: str) -> dict[str, Any]:
        """The JSON object in file ``name``; empty when there is none or it was cut short by a crash."""
        return read_object(self.directory / name) or {}

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Replace file ``name`` as a whole; only the owner may read it."""
        write_object(self.directory / name, value)

    def remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """The value that ``make`` gave when ``name`` was first asked for, in any start of this place."""
        known = self._memory()
        if name not in known:
            known[name] = make()
            self.write(MEMORY_FILE, known)
        return known[name]

    def remembers(self, name: str) -> bool:
        """Whether ``name`` was asked for before."""
        return name in self._memory()

    def remembers_secret(self, name: str) -> bool:
        """Whether secret ``name`` was asked for before."""
        return self.remembers(f"secret:{name}")

    def _memory(self) -> dict[str, Any]:
        known = read_object(self.directory / MEMORY_FILE)
        # Values made anew would not be those that the data knows.
        if known is None:
            raise PlaceRefused(
                f"{self.directory / MEMORY_FILE}, which holds the passwords of this installation, is no JSON object. "
                "Put it back from a copy, or remove it: the next start makes new ones, and the data stays; what was "
                "signed or sealed with the old SECRET_KEY is lost."
            )
        return known

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


def read_object(file: Path) -> dict[str, Any] | None:
    """The JSON object in ``file``: empty when there is no such file, None when something else is in it."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def write_object(file: Path, value: dict[str, Any]) -> None:
    """Replace ``file`` as a whole, whatever crashes meanwhile; only its owner may read it."""
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    with new.open("w", encoding="utf-8") as handle:
        json.dump(value, handle, indent=1)
        handle.flush()
        # A machine that crashes could otherwise leave the new name with nothing behind it.
        os.fsync(handle.fileno())
    new.replace(file)


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
