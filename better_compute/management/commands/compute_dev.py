"""``manage.py compute_dev``: the whole installation on this machine, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from better_compute.devtools import plan, running
from better_compute.devtools.place import Place, PlaceTaken
from better_compute.devtools.supervisor import Died, Service, Stopped, Supervisor, Task

DRIVE_SECONDS = 300.0


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
        try:
            place = Place.claim("demo")
        except PlaceTaken as taken:
            raise CommandError(str(taken)) from None
        supervisor = Supervisor(place)
        for name in place.end_leftovers():
            supervisor.say(f"stopped {name}, which a start that crashed had left running")
        code = 0
        with _stopping_on_signals(supervisor):
            try:
                code = self._run(supervisor, place, options["port"], options["once"])
            except Stopped:
                code = 130
            except (Died, RuntimeError) as failure:
                supervisor.say(str(failure))
                code = 1
            finally:
                supervisor.say("stopping")
                supervisor.stop()
                (place.directory / running.ENVIRONMENT_FILE).unlink(missing_ok=True)
                supervisor.say("everything is stopped")
                place.release()
        sys.exit(code)

    def _run(self, supervisor: Supervisor, place: Place, port: int, once: str | None) -> int:
        laid_out = plan.make(_project(), place, port, supervisor.say)
        for make in laid_out.steps:
            step = make()
            if isinstance(step, Service):
                supervisor.start(step)
            elif code := supervisor.run(step):
                raise RuntimeError(f"{step.name} failed with exit code {code}; its own words stand above.")
        place.write(running.ENVIRONMENT_FILE, running.of(laid_out.driver_env()))
        if once:
            argv = [sys.executable, "-m", once]
            return supervisor.run(
                Task(name="once", argv=argv, env=laid_out.driver_env(), seconds=DRIVE_SECONDS, bare=True)
            )
        _tell(supervisor, place, laid_out.url())
        supervisor.watch()
        return 0


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise ArgumentTypeError(f"{text!r} is no port; give a number up to 65535, or 0 for a free one")
    return int(text)


def _project() -> plan.Project:
    """The entry points that the settings and the running script name."""
    application = str(getattr(settings, "WSGI_APPLICATION", "") or "")
    if not application:
        raise CommandError("WSGI_APPLICATION in the settings is empty. Set it to the path of your WSGI application.")
    module, _, name = application.rpartition(".")
    beside = dict(getattr(settings, "COMPUTE_DEV_BESIDE", {}))
    return plan.Project(Path(sys.argv[0]).resolve(), f"{module}:{name}", module.partition(".")[0], beside)


def _tell(supervisor: Supervisor, place: Place, url: str) -> None:
    login = place.read(plan.LOGIN_FILE)
    supervisor.say("")
    supervisor.say(f"Admin  {url}/admin/   user {login['user']}   password {login['password']}")
    supervisor.say(f"API    {url}/api/compute/")
    for tenant, token in login["tokens"].items():
        supervisor.say(f"       token of tenant {tenant}: {token}")
    supervisor.say(f"       token of the installation: {login['installation_token']}")
    supervisor.say("In another shell, `.venv/bin/python manage.py doctor` and every other command speak to it.")
    supervisor.say("Ctrl-C stops everything.")


@contextmanager
def _stopping_on_signals(supervisor: Supervisor) -> Iterator[None]:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda *_: supervisor.ask_stop()) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
