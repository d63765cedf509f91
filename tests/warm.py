"""A warm Python: one process that has imported everything and forks for each command.

A fork is a process of its own, with its own settings, app registry and connections; it can be killed, and ends
with an exit code. Only the imports of packages are shared, so a command starts in a tenth of a second, and a worker
in half of one where it took two. The server takes a connection for each command, over which come the two ends of
its output.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

#: What the ``manage.py`` of a throwaway host imports.
HOST = """
import django
from django.conf import settings

settings.configure(
    SECRET_KEY="of a throwaway host",
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}},
    INSTALLED_APPS=[
        "better_compute",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "pgtrigger",
    ],
)
django.setup()
import django.contrib.postgres.operations
import django.core.management.sql
"""

#: What workers and servers of the example project import.
PROJECT = """
import os

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.engine.plant_settings"
import django

django.setup()
import celery.apps.worker
import celery.bin.celery
import celery.concurrency.solo
import celery.concurrency.thread
import celery.worker.consumer
import kombu.transport.redis
import example_project.urls
"""

#: Reads settings or the environment when it is imported, so each fork imports it itself.
OF_EACH = ("example_project", "tests", "settings", "urls")

#: Where the server says that it listens.
READY = "ready"


@dataclass
class Started:
    """A command that runs; what the tests use of ``subprocess.Popen``."""

    connection: socket.socket
    pid: int
    stdout: IO[str] | None = None
    stderr: IO[str] | None = None
    returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code of what has ended, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self.connection], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code, negative for a signal."""
        if self.returncode is None:
            self.connection.settimeout(timeout)
            try:
                answer = self.connection.recv(64)
            except TimeoutError:
                self.kill()
                raise subprocess.TimeoutExpired("manage.py", timeout or 0) from None
            self.connection.close()
            self.returncode = os.waitstatus_to_exitcode(int(answer))
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both outputs to their ends, and wait."""
        deadline = None if timeout is None else time.monotonic() + timeout
        read = {self.stdout: "", self.stderr: ""}
        with selectors.DefaultSelector() as selector:
            for stream in read:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                left = None if deadline is None else deadline - time.monotonic()
                ready = selector.select(left)
                if not ready:
                    self.kill()
                    raise subprocess.TimeoutExpired("manage.py", timeout or 0)
                for key, _ in ready:
                    chunk = os.read(key.fd, 65536)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    read[key.fileobj] += chunk.decode()  # type: ignore[index]
        for stream in read:
            # What a test read line by line before may have left text in the buffer.
            stream.close()
        self.wait(None if deadline is None else max(1.0, deadline - time.monotonic()))
        return read[self.stdout], read[self.stderr]

    def kill(self) -> None:
        """Kill it as kill -9 does."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def send_signal(self, number: int) -> None:
        """Send a signal to what has not ended."""
        if self.poll() is None:
            # It may have ended since.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass
class Warm:
    """The server, and how to ask it; ``imports`` is code that imports what forks share."""

    socket_path: Path
    imports: str
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("DJANGO_", "PYTEST_", "PG"))},
            "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "error::DeprecationWarning:better_compute",
                __file__,
                str(self.socket_path),
                self.imports,
            ],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().decode().strip() == READY

    def start(self, code: str, folder: Path, path: list[str], environment: dict[str, str]) -> Started:
        """Run ``code`` in a fork, below ``folder``, with ``environment`` added to that of the server."""
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        order = {"code": code, "folder": str(folder), "path": path, "environment": environment}
        try:
            return Started(*self._order(order, out_end, err_end), os.fdopen(out), os.fdopen(err))
        finally:
            os.close(out_end)
            os.close(err_end)

    def python(self, *arguments: str, folder: Path, environment: dict[str, str], log: IO[Any]) -> Started:
        """Run a fork as ``python`` with ``arguments`` would run, in ``environment`` alone, both outputs in ``log``.

        ``arguments`` begin with ``-c`` and code, ``-m`` and a module, or the path of a program.
        """
        flag, rest = (arguments[0], arguments[1:]) if arguments[0] in ("-c", "-m") else ("", arguments)
        run = {
            "-c": rest[0],
            "-m": f"import runpy; runpy.run_module({rest[0]!r}, run_name='__main__', alter_sys=True)",
            "": f"import runpy; runpy.run_path({rest[0]!r}, run_name='__main__')",
        }
        order = {
            "code": run[flag],
            "folder": str(folder),
            "path": [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)), str(folder)],
            "environment": environment,
            "alone": True,
            "argv": [flag or rest[0], *rest[1:]],
        }
        return Started(*self._order(order, log.fileno(), log.fileno()))

    def _order(self, order: dict[str, Any], out: int, err: int) -> tuple[socket.socket, int]:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(str(self.socket_path))
        socket.send_fds(connection, [json.dumps(order).encode()], [out, err])
        connection.shutdown(socket.SHUT_WR)
        return connection, int(connection.recv(16))

    def stop(self) -> None:
        """End the server; commands that run go on."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=10)


def _modules(imports: str) -> list[str]:
    """What ``imports`` and the commands import, learnt in a fork so that nothing of its set-up stays here."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        before = set(sys.modules)
        exec(imports, {})  # noqa: S102
        from django.core.management import get_commands, load_command_class
        from django.db import connection

        import better_compute.registry

        assert connection.vendor == "postgresql"
        for name, app in get_commands().items():
            if app in {"better_compute", "django.core"} and name != "testserver":
                load_command_class(app, name)
        better_compute.registry.current()
        os.write(writing, "\n".join(name for name in sys.modules if name not in before).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as names:
        learnt = names.read().split()
    assert learnt
    return learnt


def _import_what_needs_no_set_up(imports: str) -> None:
    from importlib import import_module

    for name in _modules(imports):
        if ".migrations" in name or name.partition(".")[0] in OF_EACH:
            continue
        try:
            import_module(name)
        except Exception:  # noqa: S112
            # Models and what needs them; each host imports these itself.
            continue
    from django.conf import settings

    assert not settings.configured
    # Forks share these pages only as long as the collector does not write into them.
    gc.collect()
    gc.freeze()


def _serve(path: str) -> Callable[[], None]:
    """Fork for each order; returns only in a fork, with what it has to run."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen(64)
    print(READY, flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            if any(key.fileobj is sys.stdin for key, _ in selector.select()):
                # The tests have ended.
                os._exit(0)
            connection = listening.accept()[0]
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return _watch(connection)
            connection.close()


def _watch(connection: socket.socket) -> Callable[[], None]:
    """Fork once more and tell how that ends; returns only in the fork."""
    order, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 2)
    while chunk := connection.recv(1 << 16):
        order += chunk
    pid = os.fork()
    if pid == 0:
        connection.close()
        for target, source in enumerate(descriptors, start=1):
            os.dup2(source, target)
            os.close(source)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        return _prepared(json.loads(order))
    for descriptor in (1, 2, *descriptors):
        os.close(descriptor)
    connection.sendall(str(pid).encode())
    connection.sendall(str(os.waitpid(pid, 0)[1]).encode())
    os._exit(0)


def _prepared(order: dict[str, Any]) -> Callable[[], None]:
    os.chdir(order["folder"])
    sys.path[:0] = order["path"]
    if order.get("alone"):
        os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = order.get("argv", ["manage.py"])
    return lambda: _run(order["code"])


def _run(code: str) -> None:
    """Run ``code`` and end as Python ends, but without taking apart what all commands share."""
    status = 0
    try:
        exec(code, {"__name__": "__main__"})  # noqa: S102
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    # The folder of this file would make its neighbours importable.
    del sys.path[0]
    _import_what_needs_no_set_up(sys.argv[2])
    _serve(sys.argv[1])()
