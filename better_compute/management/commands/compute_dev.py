"""``manage.py compute_dev``: the whole installation on this machine, until Ctrl-C."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

#: What starts processes and serves; not installed with the package itself.
NEEDED: Final = ("psutil", "granian")


class Command(BaseCommand):
    """Start database, broker, API and worker; migrate and seed; stop all together."""

    help = "Run a whole installation on this machine: database, broker, API server and worker, until Ctrl-C."
    # The database these would look at does not run yet.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--port", type=_port, default=0, help="Port of the API server; a free one by default.")
        parser.add_argument(
            "--once",
            metavar="MODULE",
            help="Run `python -m MODULE` against the running installation, stop everything, and exit with its code.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a stop is asked for, a process dies, or the module given with --once has ended."""
        if missing := [name for name in NEEDED if find_spec(name) is None]:
            raise CommandError(f"compute_dev needs {' and '.join(missing)}: pip install 'better-compute[dev]'.")
        # Imported here: they stand on what was just looked for.
        from better_compute.devtools import installation, plan
        from better_compute.devtools.place import PlaceRefused
        from better_compute.devtools.ports import PortRefused

        application = str(getattr(settings, "WSGI_APPLICATION", "") or "")
        if not application:
            raise CommandError(
                "WSGI_APPLICATION in the settings is empty. Set it to the path of your WSGI application."
            )
        module, _, name = application.rpartition(".")
        beside = dict(getattr(settings, "COMPUTE_DEV_BESIDE", {}))
        project = plan.Project(Path(sys.argv[0]).resolve(), f"{module}:{name}", module.partition(".")[0], beside)
        try:
            code = installation.run(project, options["port"], options["once"])
        except PlaceRefused as refused:
            raise CommandError(str(refused)) from None
        except PortRefused as refused:
            raise CommandError(f"{refused}; give another PORT, or PORT=0 for a free one.") from None
        sys.exit(code)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise ArgumentTypeError(f"{text!r} is no port; give a number up to 65535, or 0 for a free one")
    return int(text)
