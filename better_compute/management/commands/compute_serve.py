"""``manage.py compute_serve``: what one process of a host runs, by role."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Final

from celery.app.utils import find_app
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from better_compute.devtools.ports import PortRefused, refuse_taken
from better_compute.engine.bootstep import ROLES_VARIABLE, ComputeStep

#: How many threads an API server has; its ``wsgi.py`` passes it to ``compute.initialize``.
THREADS_VARIABLE: Final = "COMPUTE_THREADS"
WORKERS: Final = ("all", "controllers", "scheduler")
SERVERS: Final = ("api", "stream")
#: How long a server waits for calls that run when it is told to stop, in whole seconds.
GRACE_SECONDS: Final = 1


class Command(BaseCommand):
    """Becomes the worker, the API server or the stream server of this host project, with the options it must have.

    The process is replaced, so that signals from a supervisor reach the server itself.
    """

    help = "Serve as a role: all, controllers or scheduler (a worker), api (calls over HTTP) or stream (what waits)."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The role, and where the server listens or which app the worker serves."""
        parser.add_argument("--roles", default="all", choices=[*WORKERS, *SERVERS])
        parser.add_argument("--app", default="", help="what `celery -A` takes; by default the settings' package")
        parser.add_argument("--pool", default="threads", choices=["threads", "solo"])
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--threads", type=int, default=4, help="calls that an API server answers at once; each holds a connection"
        )
        parser.add_argument("--print", action="store_true", help="print the command instead of running it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace this process."""
        commands = {"api": self._api, "stream": self._stream}
        command = commands.get(options["roles"], self._worker)(options)
        if options["print"]:
            self.stdout.write(" ".join(command))
            return
        if options["roles"] in WORKERS:
            _refuse_without_celery(_app(options))
        else:
            try:
                # granian would share it with another installation's, and calls would reach either.
                refuse_taken(options["port"], options["host"])
            except PortRefused as refused:
                raise CommandError(f"{refused}; give another --port or --host.") from None
        environment = {**os.environ, ROLES_VARIABLE: options["roles"], THREADS_VARIABLE: str(options["threads"])}
        os.execve(command[0], command, environment)  # noqa: S606 - an argument list, no shell

    def _worker(self, options: dict[str, Any]) -> list[str]:
        return [
            *(sys.executable, "-m", "celery", "-A", _app(options), "worker", "--pool", options["pool"]),
            *("--concurrency", "1", "--without-gossip", "--without-mingle", "--loglevel", "INFO"),
        ]

    def _api(self, options: dict[str, Any]) -> list[str]:
        if find_spec("granian") is None:
            raise CommandError("Serving the API needs granian: pip install 'better-compute[server]'.")
        module, _, name = settings.WSGI_APPLICATION.rpartition(".")
        return [
            *(sys.executable, "-m", "granian", "--interface", "wsgi"),
            # HTTP/2 may send a body without saying so. A process that serves and is killed is started again.
            *("--workers", "1", "--blocking-threads", str(options["threads"]), "--no-ws", "--http", "1"),
            "--respawn-failed-workers",
            *("--host", options["host"], "--port", str(options["port"]), f"{module}:{name}"),
        ]

    def _stream(self, options: dict[str, Any]) -> list[str]:
        if find_spec("uvicorn") is None:
            raise CommandError("Serving streams needs uvicorn: pip install 'better-compute[server]'.")
        return [
            *(sys.executable, "-m", "uvicorn", "better_compute.management.asgi:application"),
            *("--lifespan", "on", "--ws", "none", "--no-access-log", "--no-server-header", "--no-proxy-headers"),
            *("--timeout-graceful-shutdown", str(GRACE_SECONDS)),
            *("--host", options["host"], "--port", str(options["port"])),
        ]


def _app(options: dict[str, Any]) -> str:
    return str(options["app"] or settings.SETTINGS_MODULE.partition(".")[0])


def _refuse_without_celery(name: str) -> None:
    """Say what Celery would, and the mend; a worker without our step would start and run nothing."""
    app = None
    with suppress(AttributeError, ModuleNotFoundError):
        app = find_app(name)
    where = f"{name.partition(':')[0]}/celery.py"
    if app is None:
        raise CommandError(
            f"No Celery app is found in {name!r}. Write {where} as docs/how-to/run-workers.md shows and import its app "
            "in the package's __init__.py, or name another app with --app."
        )
    if ComputeStep not in app.steps["worker"]:
        raise CommandError(
            f"The Celery app in {name!r} runs no reconcilers. Add better_compute.install_celery(app) to {where}."
        )
