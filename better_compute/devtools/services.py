"""The database and the broker: those the environment names, else servers of our own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from better_compute.devtools import broker, postgres
from better_compute.devtools.child import Child
from better_compute.devtools.place import Place

READY_SECONDS = 60.0
POLL_SECONDS = 0.1


@dataclass
class Services:
    """What tests and benchmarks stand on.

    Reads ``DATABASE_URL`` and ``CELERY_BROKER_URL`` and starts only what they do not name. After
    :meth:`start` both are set in this process's environment, and so in that of its children.
    """

    #: Name of the place below ``.dev/``; concurrent runs get places of their own.
    name: str = "test"
    progress: Callable[[str], None] = print
    _children: list[tuple[str, Child]] = field(default_factory=list)
    _place: Place | None = None
    _set: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Start what is missing and wait until it answers.

        Raises
        ------
        RuntimeError
            With the last lines of a server that does not come up.
        """
        try:
            if "DATABASE_URL" not in os.environ:
                self._start_postgres(self._claim())
            if "CELERY_BROKER_URL" not in os.environ:
                self._start_broker(self._claim())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop what :meth:`start` started, and nothing else."""
        for name, child in reversed(self._children):
            module = postgres if name == postgres.Postgres.name else broker
            child.stop(with_signal=module.STOP_SIGNAL, seconds=module.STOP_SECONDS)
            if self._place is not None:
                self._place.forget(name)
        self._children.clear()
        for variable in self._set:
            os.environ.pop(variable, None)
        self._set.clear()
        if self._place is not None:
            self._place.release()
            self._place = None

    def _claim(self) -> Place:
        if self._place is None:
            self._place = Place.claim(self.name, slots=16)
            self._place.end_leftovers()
        return self._place

    def _start_postgres(self, place: Place) -> None:
        server = postgres.Postgres(place, durable=False)
        self._wait(server.name, server.start(self.progress), server.is_ready)
        self._environ("DATABASE_URL", server.url())
        self._environ("COMPUTE_APP_ROLE", postgres.APP_ROLE)
        self._environ("COMPUTE_APP_PASSWORD", server.password(postgres.APP_ROLE))

    def _start_broker(self, place: Place) -> None:
        server = broker.Broker(place)
        self._wait(server.name, server.start(), server.is_ready)
        self._environ("CELERY_BROKER_URL", server.url())

    def _environ(self, name: str, value: str) -> None:
        os.environ[name] = value
        self._set.append(name)

    def _wait(self, name: str, child: Child, is_ready: Callable[[], bool]) -> None:
        self._children.append((name, child))
        if self._place is not None:
            self._place.record(name, child.pid)
        deadline = time.monotonic() + READY_SECONDS
        while not is_ready():
            if child.wait(POLL_SECONDS):
                raise RuntimeError(f"{name} ended with {child.exit_code}:\n" + "\n".join(child.tail))
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} is not ready after {READY_SECONDS:.0f} s:\n" + "\n".join(child.tail))
