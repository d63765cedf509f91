"""One installation from start to end: what ``manage.py compute_dev`` runs, and what it tells the person there."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from better_compute.devtools import plan, running
from better_compute.devtools.place import DIRECTORY_VARIABLE, Place
from better_compute.devtools.supervisor import Died, Service, Stopped, Supervisor, Task

DRIVE_SECONDS = 300.0


def run(project: plan.Project, port: int, once: str | None) -> int:
    """Run until a stop is asked for, a process dies, or module ``once`` has ended; returns the exit code.

    Raises
    ------
    PlaceRefused
        When another installation holds the place, or it is broken. Nothing was started.
    PortRefused
        When nothing can be served on ``port``. Nothing was started.
    """
    place = Place.claim("demo")
    try:
        return _hold(place, project, port, once)
    finally:
        place.release()


def _hold(place: Place, project: plan.Project, port: int, once: str | None) -> int:
    supervisor = Supervisor(place)
    for name in place.end_leftovers():
        supervisor.say(f"stopped {name}, which a start that crashed had left running")
    # Of a start that crashed: until this one is ready, commands are told to wait.
    (place.directory / running.ENVIRONMENT_FILE).unlink(missing_ok=True)
    laid_out = plan.make(project, place, port, supervisor.say)
    with _stopping_on_signals(supervisor):
        try:
            return _run(supervisor, place, laid_out, once)
        except Stopped:
            return 130
        except (Died, RuntimeError) as failure:
            supervisor.say(str(failure))
            return 1
        finally:
            supervisor.say("stopping")
            supervisor.stop()
            (place.directory / running.ENVIRONMENT_FILE).unlink(missing_ok=True)
            supervisor.say("everything is stopped")


def _run(supervisor: Supervisor, place: Place, laid_out: plan.Plan, once: str | None) -> int:
    for make in laid_out.steps:
        step = make()
        if isinstance(step, Service):
            supervisor.start(step)
        elif code := supervisor.run(step):
            raise RuntimeError(f"{step.name} failed with exit code {code}; its own words stand above.")
    place.write(running.ENVIRONMENT_FILE, running.of(laid_out.driver_env()))
    if once:
        argv = [sys.executable, "-m", once]
        return supervisor.run(Task(name="once", argv=argv, env=laid_out.driver_env(), seconds=DRIVE_SECONDS, bare=True))
    _tell(supervisor, place, laid_out.url())
    supervisor.watch()
    return 0


def _tell(supervisor: Supervisor, place: Place, url: str) -> None:
    login = place.read(plan.LOGIN_FILE)
    supervisor.say("")
    supervisor.say(f"Admin  {url}/admin/   user {login['user']}   password {login['password']}")
    supervisor.say(f"API    {url}/api/compute/   its reference: {url}/api/compute/reference")
    for tenant, token in login["tokens"].items():
        supervisor.say(f"       token of tenant {tenant}: {token}")
    supervisor.say(f"       token of the installation: {login['installation_token']}")
    for line in how_to_speak_to_it(place.directory.parent):
        supervisor.say(line)
    supervisor.say("Ctrl-C stops everything.")


def how_to_speak_to_it(root: Path) -> list[str]:
    """What a person types in another shell, so that commands speak to the installation below ``root``."""
    script, interpreter = Path(sys.argv[0]), Path(sys.executable)
    here = Path.cwd()
    typed = [str(path.relative_to(here)) if path.is_relative_to(here) else str(path) for path in (interpreter, script)]
    lines = []
    if not running.asked:
        lines += [
            f"So that other commands speak to it, {script.name} must ask where it runs, before Django is imported:",
            "  from better_compute.devtools import running",
            "  running.adopt(sys.argv[1:2])",
        ]
    if os.environ.get(DIRECTORY_VARIABLE):
        lines += ["In another shell, first:", f"  export {DIRECTORY_VARIABLE}={shlex.quote(str(root))}"]
    else:
        lines += [f"In another shell, in {here}:"]
    return [*lines, f"  {shlex.join([*typed, 'doctor'])}   (and every other command) speaks to it."]


@contextmanager
def _stopping_on_signals(supervisor: Supervisor) -> Iterator[None]:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda *_: supervisor.ask_stop()) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
