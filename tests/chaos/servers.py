"""A database and a broker that are there to be broken."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import redis

from better_compute.devtools.broker import Broker
from better_compute.devtools.child import Child
from better_compute.devtools.place import Place
from better_compute.devtools.postgres import DATABASE, OWNER_ROLE, SUPERUSER, Postgres

READY_SECONDS = 60.0
#: How a database server ends: in good order, or as if its machine had died.
FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT


class Servers:
    """One throwaway cluster and one broker. Commits are as durable as in production: a restart must keep them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.postgres = Postgres(place)
        self.broker = Broker(place)
        self._children: dict[str, Child] = {}

    def start_postgres(self) -> None:
        """Start it and wait until it answers."""
        self._start("database", self.postgres.start(lambda line: None), self.postgres.is_ready)

    def start_broker(self) -> None:
        """Start it and wait until it answers."""
        self._start("broker", self.broker.start(), self.broker.is_ready)

    def _start(self, name: str, child: Child, is_ready: Callable[[], bool]) -> None:
        self._children[name] = child
        self.place.record(name, child.pid)
        until = time.monotonic() + READY_SECONDS
        while not is_ready():
            if child.wait(0.05) or time.monotonic() > until:
                raise RuntimeError(f"the {name} does not come up:\n" + "\n".join(child.tail))

    def restart_postgres(self, how: signal.Signals) -> None:
        """Stop it with ``how`` and start it again."""
        self._children["database"].stop(with_signal=how, seconds=20)
        self.start_postgres()

    def restart_broker(self, down_seconds: float) -> None:
        """Kill it, stay without one for a while, and start an empty one."""
        self._children["broker"].stop(with_signal=signal.SIGKILL)
        time.sleep(down_seconds)
        self.start_broker()

    def flush_broker(self) -> None:
        """Lose every message."""
        with contextlib.suppress(redis.RedisError), redis.Redis.from_url(self.broker.url(), socket_timeout=2) as client:
            client.flushall()

    def connect(self) -> psycopg.Connection[Any]:
        """A connection that may look at and end everybody's."""
        return psycopg.connect(self.postgres.url(SUPERUSER, DATABASE), autocommit=True, connect_timeout=3)

    def fresh_database(self) -> None:
        """Begin with an empty one, whatever an earlier run left."""
        with psycopg.connect(self.postgres.url(SUPERUSER, SUPERUSER), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER_ROLE}")

    def stop(self) -> None:
        """Stop both."""
        for name, child in self._children.items():
            child.stop(with_signal=FAST if name == "database" else signal.SIGTERM, seconds=20)
            self.place.forget(name)


@contextlib.contextmanager
def servers() -> Iterator[Servers]:
    """Both running, and afterwards no trace of them."""
    place = Place.claim("chaos", slots=8)
    place.end_leftovers()
    running = Servers(place)
    try:
        running.start_postgres()
        running.fresh_database()
        running.start_broker()
        yield running
    finally:
        running.stop()
        directory = place.directory
        elsewhere = directory / "elsewhere"
        if elsewhere.is_symlink():
            shutil.rmtree(Path(elsewhere.readlink()), ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)
        place.release()
