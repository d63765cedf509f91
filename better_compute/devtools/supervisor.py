"""Runs a table of processes as one: started in order, watched together, stopped in reverse.

One dying stops all, with its last lines; a stop asked for from outside stops what was started and nothing else.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from better_compute.devtools.account import Account
from better_compute.devtools.child import Child
from better_compute.devtools.place import Place

POLL_SECONDS = 0.1
#: How often a wait says that it is still waiting.
PROGRESS_SECONDS = 3.0
COLOURS = (36, 33, 32, 35, 34, 31)


class Died(Exception):
    """A process ended, or did not become ready; the message holds its last lines."""


class Stopped(Exception):
    """Somebody asked for a stop while a process was starting."""


def _at_once(child: Child) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A process that runs until it is stopped. Times in seconds."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    account: Account | None = None
    #: Asked again and again until it is true.
    ready: Callable[[Child], bool] = _at_once
    ready_seconds: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 15.0
    #: How long it may take to stop before it was ready; None as long as after.
    unready_stop_seconds: float | None = None
    #: Left out of the output unless it dies.
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A process that runs once, to its end."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    seconds: float = 300.0
    #: Print its lines as they are, without the prefix.
    bare: bool = False


@dataclass
class Supervisor:
    """What runs now, in the order it was started.

    Parameters
    ----------
    place
        Remembers what runs, for the start after a crash.
    out
        Where the lines go; coloured when it is a terminal.
    """

    place: Place
    out: TextIO = field(default_factory=lambda: sys.stdout)
    colour: bool | None = None
    _running: list[tuple[Service, Child]] = field(default_factory=list)
    _ready: set[int] = field(default_factory=set)
    _stop_asked: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask_stop(self) -> None:
        """End the watch, or the wait for whatever is starting; safe in a signal handler."""
        self._stop_asked.set()

    def say(self, text: str, name: str = "dev", colour: int = 1) -> None:
        """Print ``text`` behind the name of who says it."""
        coloured = self.out.isatty() if self.colour is None else self.colour
        prefix = f"\x1b[{colour}m{name:>9}\x1b[0m" if coloured else f"{name:>9}"
        with self._lock:
            for line in text.splitlines() or [""]:
                self.out.write(f"{prefix} | {line}\n")
            self.out.flush()

    def start(self, service: Service) -> Child:
        """Start ``service`` and wait until it is ready.

        Raises
        ------
        Died
            When it ends first, or is not ready in time.
        Stopped
            When a stop was asked for meanwhile.
        """
        self._refuse_stopped()
        child = Child(
            service.argv,
            env=service.env,
            cwd=service.cwd,
            account=service.account,
            on_line=(lambda line: None) if service.quiet else self._printer(service.name),
        )
        self._running.append((service, child))
        self.place.record(service.name, child.pid)
        began = said = time.monotonic()
        while not service.ready(child):
            if child.wait(POLL_SECONDS):
                raise Died(_report(service.name, child))
            self._refuse_stopped()
            now = time.monotonic()
            if now - began > service.ready_seconds:
                raise Died(f"{service.name} is not ready after {service.ready_seconds:.0f} s.\n" + _last_lines(child))
            if now - said > PROGRESS_SECONDS:
                said = now
                self.say(f"waiting for {service.name} ({now - began:.0f} s)")
        self._ready.add(child.pid)
        self.say(f"{service.name} is ready ({time.monotonic() - began:.1f} s)")
        return child

    def run(self, task: Task) -> int:
        """Run ``task`` to its end and return its exit code; the services are watched meanwhile.

        Raises
        ------
        Died
            When a service ends meanwhile, or the task takes longer than its time.
        """
        self._refuse_stopped()
        child = Child(task.argv, env=task.env, on_line=self._print_bare if task.bare else self._printer(task.name))
        self.place.record(task.name, child.pid)
        deadline = time.monotonic() + task.seconds
        try:
            while not child.wait(POLL_SECONDS):
                self._refuse_stopped()
                self._refuse_dead()
                if time.monotonic() > deadline:
                    raise Died(f"{task.name} took longer than {task.seconds:.0f} s.\n" + _last_lines(child))
        finally:
            child.stop()
            self.place.forget(task.name)
        return child.exit_code if child.exit_code is not None else 1

    def watch(self) -> None:
        """Return when a stop is asked for; :class:`Died` when a service ends."""
        while not self._stop_asked.wait(POLL_SECONDS):
            self._refuse_dead()

    def stop(self) -> None:
        """Stop everything that runs, the last started first."""
        while self._running:
            service, child = self._running.pop()
            impatient = None if child.pid in self._ready else service.unready_stop_seconds
            seconds = service.stop_seconds if impatient is None else impatient
            graceful = child.stop(with_signal=service.stop_signal, seconds=seconds)
            if not graceful and impatient is None:
                self.say(f"{service.name} did not stop in {seconds:.0f} s and was killed")
            self._ready.discard(child.pid)
            self.place.forget(service.name)

    def _printer(self, name: str) -> Callable[[str], None]:
        colour = COLOURS[len(self._running) % len(COLOURS)]
        return lambda line: self.say(line, name, colour)

    def _print_bare(self, line: str) -> None:
        with self._lock:
            self.out.write(line + "\n")
            self.out.flush()

    def _refuse_stopped(self) -> None:
        if self._stop_asked.is_set():
            raise Stopped

    def _refuse_dead(self) -> None:
        for service, child in self._running:
            if child.exit_code is not None:
                child.wait(1)
                raise Died(_report(service.name, child))


def _report(name: str, child: Child) -> str:
    code = child.exit_code
    how = f"by signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"with exit code {code}"
    return f"{name} (process {child.pid}) ended {how}.\n" + _last_lines(child)


def _last_lines(child: Child) -> str:
    return "Its last lines:\n" + "\n".join(f"  {line}" for line in child.tail) if child.tail else "It said nothing."
