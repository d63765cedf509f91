"""A process's life as a host of modules: from :func:`initialize` to :func:`stop`.

Server and worker entry points call these; nothing does from ``AppConfig.ready()``, which runs for every
management command too.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, RLock, Thread
from typing import Final
from uuid import uuid4

from django.core.checks import ERROR
from django.db import connections
from django.db.utils import Error as DatabaseProblem, OperationalError

from better_compute import conf, ledger, registry
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.module import ModuleSpec
from better_compute.engine import wakeup
from better_compute.engine.contexts import module_context
from better_compute.store import clock, presence
from better_compute.store.failures import trace_failure

log = logging.getLogger(__name__)

#: Connections that saying that a process is up may hold.
_PRESENCE_CONNECTIONS: Final = 1
#: How long a process that stops waits for a database that does not answer.
_FAREWELL_SECONDS: Final = 5.0
#: Most pending migrations that a refusal names.
_NAMED: Final = 10


class _Presence:
    """Says every 30 s that this process is up; holds no connection in between."""

    def __init__(self, process: presence.Process, using: str) -> None:
        self._process = process
        self._using = using
        self._ended = Event()
        self._thread = Thread(target=self._keep, name="compute-presence", daemon=True)

    def start(self) -> None:
        presence.sweep(self._using)
        presence.say_up(self._process, self._using)
        self._thread.start()

    def _keep(self) -> None:
        while not self._ended.wait(presence.REFRESH.total_seconds()):
            self._say("is up", lambda: presence.say_up(self._process, self._using))
        self._say("stops", lambda: presence.say_gone(self._process.id, self._using))

    def _say(self, what: str, say: Callable[[], None]) -> None:
        try:
            say()
        except DatabaseProblem as problem:
            # Whoever reads the table takes a silent process for gone, and a row that grows old is the truth.
            log.warning("could not say that this process %s: %s", what, type(problem).__name__)
        finally:
            connections[self._using].close()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(_FAREWELL_SECONDS)
            if self._thread.is_alive():
                log.warning("the database does not answer; its row of this process grows old by itself")


class _Life:
    """What this process has started and has to stop."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.running = False
        self.presence: _Presence | None = None
        self.started: list[ModuleSpec] = []
        self.loops: list[Callable[[], None]] = []

    def unwind(self) -> list[BaseException]:
        """Stop loops, then modules in reverse, then presence; return what they raised, in that order."""
        failures: list[BaseException] = []
        while self.loops:
            _attempt(self.loops.pop(), "stopping a loop", failures)
        while self.started:
            spec = self.started.pop()
            if spec.stop is not None:
                _attempt(spec.stop, f"stopping module {spec.name}", failures)
        if self.presence is not None:
            _attempt(self.presence.stop, "ending presence", failures)
            self.presence = None
        self.running = False
        return failures


_life = _Life()


def initialize(role: str, *, connections_held: int = 1) -> None:
    """Make this process ready to serve; a second call does nothing.

    Checks what is hosted, migrates (or refuses while a migration is pending, unless
    ``COMPUTE["MIGRATE_ON_START"]``), anchors the clock, states the process in ``compute_processes``, and
    calls every module's ``start()`` in hosted order. When one raises, those that started are stopped in
    reverse and the error goes through.

    Parameters
    ----------
    role
        What this process is, for operators: ``api``, ``stream``, ``controllers``, ``scheduler``, ``all``.
    connections_held
        How many PostgreSQL connections the process's own work may hold at once: one for each thread that serves.
        What it states is that and its own: one for its presence, one for each sender of wake-ups.

    Raises
    ------
    ComputeError
        INVALID_CONFIG for a broken rule, a pending migration or a clock that went back; STORAGE_BUSY when
        the database cannot be reached.
    """
    with _life.lock:
        if _life.running:
            return
        hosted = registry.current()
        for message in registry.problems():
            if message.level < ERROR:
                log.warning("%s: %s %s", message.id, message.msg, message.hint or "")
        using = conf.current().database
        with _given_back(using):
            _reach(using)
            _migrate(using)
            clock.anchor(using)
            try:
                _life.presence = _Presence(_process(role, hosted, connections_held), using)
                _life.presence.start()
                _start(hosted.modules)
            except BaseException:
                _life.unwind()
                raise
        _life.running = True
        atexit.register(stop)


def on_stop(callback: Callable[[], None]) -> None:
    """Have :func:`stop` call ``callback`` before it stops any module; loops end themselves so."""
    with _life.lock:
        _life.loops.append(callback)


def stop() -> None:
    """Stop the loops, last registered first, then the modules in reverse order of their start.

    Everything is stopped even when something raises; the first error then goes through, and all are logged.
    A process that runs nothing does nothing.
    """
    with _life.lock:
        atexit.unregister(stop)
        failures = _life.unwind()
    if failures:
        raise failures[0]


def _start(modules: Sequence[ModuleSpec]) -> None:
    for spec in modules:
        if spec.start is not None:
            spec.start(module_context(spec))
        _life.started.append(spec)


def _attempt(action: Callable[[], None], what: str, failures: list[BaseException]) -> None:
    try:
        action()
    except BaseException as failure:
        log.error("%s failed\n%s", what, trace_failure(failure))
        failures.append(failure)


@contextmanager
def _given_back(using: str) -> Iterator[None]:
    # A server may fork after this, and a socket must not be shared by two processes.
    connection = connections[using]
    was_open = connection.connection is not None
    try:
        yield
    finally:
        if not was_open and not connection.in_atomic_block:
            connection.close()


def _reach(using: str) -> None:
    try:
        connections[using].ensure_connection()
    except OperationalError as problem:
        raise ComputeError(
            ErrorCode.STORAGE_BUSY,
            f"The database {using!r} cannot be reached: {str(problem).strip()}.",
            mend=f"Start it, or correct DATABASES[{using!r}].",
        ) from None


def _migrate(using: str) -> None:
    settings = conf.current()
    if settings.migrate_on_start:
        with _given_back(settings.owner_database):
            ledger.migrate(settings.owner_database)
        return
    pending = ledger.pending(using)
    if pending:
        more = f" and {len(pending) - _NAMED} more" if len(pending) > _NAMED else ""
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"{len(pending)} migrations are pending: {', '.join(pending[:_NAMED])}{more}.",
            mend="Run `manage.py compute_migrate`, or set COMPUTE['MIGRATE_ON_START'] = True in development.",
        )


def _process(role: str, hosted: registry.Registry, connections_held: int) -> presence.Process:
    return presence.Process(
        id=uuid4(),
        role=role,
        host=socket.gethostname(),
        pid=os.getpid(),
        fingerprint=hosted.fingerprint,
        modules=[spec.name for spec in hosted.modules],
        connections=connections_held + _PRESENCE_CONNECTIONS + wakeup.connections_held(),
    )


def _forked() -> None:
    """Let a forked child begin a life of its own: no thread of the parent's came along."""
    global _life
    atexit.unregister(stop)
    _life = _Life()


os.register_at_fork(after_in_child=_forked)
