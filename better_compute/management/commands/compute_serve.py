"""``manage.py compute_serve``: what one process of a host runs, by role."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from better_compute.engine.bootstep import ROLES_VARIABLE

#: How many threads an API server has; its ``wsgi.py`` passes it to ``compute.initialize``.
THREADS_VARIABLE: Final = "COMPUTE_THREADS"
WORKERS: Final = ("all", "controllers", "scheduler")


class Command(BaseCommand):
    """Becomes the worker or the API server of this host project, with the options that it must have.

    The process is replaced, so that signals from a supervisor reach the server itself.
    """

    help = "Serve as a role: all, controllers or scheduler (a worker), or api (an HTTP server)."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The role, and where the server listens or which app the worker serves."""
        parser.add_argument("--roles", default="all", choices=[*WORKERS, "api"])
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
        command = self._api(options) if options["roles"] == "api" else self._worker(options)
        if options["print"]:
            self.stdout.write(" ".join(command))
            return
        environment = {**os.environ, ROLES_VARIABLE: options["roles"], THREADS_VARIABLE: str(options["threads"])}
        os.execve(command[0], command, environment)  # noqa: S606 - an argument list, no shell

    def _worker(self, options: dict[str, Any]) -> list[str]:
        app = options["app"] or settings.SETTINGS_MODULE.partition(".")[0]
        return [
            *(sys.executable, "-m", "celery", "-A", app, "worker", "--pool", options["pool"], "--concurrency", "1"),
            *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
        ]

    def _api(self, options: dict[str, Any]) -> list[str]:
        if find_spec("granian") is None:
            raise CommandError("Serving the API needs granian: pip install 'better-compute[server]'.")
        module, _, name = settings.WSGI_APPLICATION.rpartition(".")
        return [
            *(sys.executable, "-m", "granian", "--interface", "wsgi"),
            *("--workers", "1", "--blocking-threads", str(options["threads"]), "--no-ws"),
            *("--host", options["host"], "--port", str(options["port"]), f"{module}:{name}"),
        ]
