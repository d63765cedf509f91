"""Hosts the runtime in a Celery worker: started with it, stopped with it, and alive while the broker is down."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from threading import Event, Thread
from typing import Any, ClassVar, Final

from celery import bootsteps
from celery.platforms import EX_FAILURE
from celery.worker import state
from django.db import InterfaceError, OperationalError, connections

from better_compute import conf, ledger
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.reconcilers import Role
from better_compute.engine import hosting
from better_compute.engine.observing import server
from better_compute.engine.runtime import ROLES, Runtime, connections_held
from better_compute.store.failures import describe_failure

log: Final = logging.getLogger(__name__)

#: Comma-separated roles of this worker process; ``compute_serve --roles`` sets it.
ROLES_VARIABLE: Final = "COMPUTE_ROLES"
#: One process is one member, so handlers must run in the process that the step runs in.
POOLS: Final = ("celery.concurrency.thread", "celery.concurrency.solo")
LOOK_SECONDS: Final = 1.0


def queue_of(member: str) -> str:
    """The queue that only ``member``'s worker consumes."""
    return f"compute.{member}"


class ComputeStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Start the runtime as soon as the store is migrated; a worker may be started before it is."""

    requires: ClassVar[Collection[str]] = ("celery.worker.components:Pool",)
    #: The runtime of this process, for the tasks.
    runtime: ClassVar[Runtime | None] = None

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        pool = worker.pool_cls.__module__
        if pool not in POOLS:
            raise SystemExit(
                f"Better Compute's workers run with --pool threads or --pool solo, not {pool.rpartition('.')[2]}: "
                "the runtime that holds the leases and the handlers must share one process. "
                "Start one worker a core, each with --pool threads."
            )
        self._stopping = Event()
        self._thread: Thread | None = None
        self._queues: list[str] = []

    def start(self, worker: Any) -> None:
        """Begin to wait for the store; returns at once, so that the worker can be stopped meanwhile."""
        self._stopping.clear()
        self._thread = Thread(target=self._begin, args=(worker,), name="compute-start", daemon=True)
        self._thread.start()

    def stop(self, worker: Any) -> None:
        """Give back the leases and stop the modules."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        hosting.stop()
        ComputeStep.runtime = None

    terminate = stop

    def _begin(self, worker: Any) -> None:
        try:
            self._run(worker)
        except Exception as error:
            if isinstance(error, ComputeError):
                log.critical("this worker cannot run: %s", error)
            else:
                log.critical("this worker cannot run: %s", describe_failure(error), exc_info=error)
            # The consumer's loop sees it and shuts down on the main thread.
            state.should_stop = EX_FAILURE

    def _run(self, worker: Any) -> None:
        roles: list[Role] = []
        while not self._stopping.is_set():
            try:
                roles = _roles()
                if self._migrated():
                    hosting.initialize(",".join(roles), connections_held=connections_held())
                    break
            except (ComputeError, OperationalError, InterfaceError) as error:
                if isinstance(error, ComputeError) and error.code is not ErrorCode.STORAGE_BUSY:
                    raise
                log.warning("waiting for the database: %s", describe_failure(error))
            self._stopping.wait(LOOK_SECONDS)
        if self._stopping.is_set():
            return
        runtime = Runtime(roles, on_join=lambda member: self._consume(worker, queue_of(member)))
        hosting.on_stop(runtime.stop)
        runtime.start()
        self._observe()
        ComputeStep.runtime = runtime
        log.info("the runtime runs %s", ", ".join(runtime.dispatcher.lanes) or "nothing")

    def _observe(self) -> None:
        try:
            stop = server.serve()
        except OSError as error:
            # The keys must run even when another process has the port.
            log.error("nobody can ask this worker how it is: COMPUTE['OBSERVE'] names a port that fails: %s", error)
            return
        if stop is not None:
            hosting.on_stop(stop)

    def _migrated(self) -> bool:
        settings = conf.current()
        if settings.migrate_on_start:
            return True
        try:
            pending = ledger.pending(settings.database)
        finally:
            connections[settings.database].close()
        if pending:
            log.warning("waiting for `manage.py compute_migrate`: %d migrations are pending", len(pending))
        return not pending

    def _consume(self, worker: Any, queue: str) -> None:
        """Consume the member's own queue from now on, in place of the one before it."""
        queues = worker.app.amqp.queues
        queues.select_add(queue)
        consumer = getattr(worker, "consumer", None)
        if consumer is not None and getattr(consumer, "task_consumer", None) is not None:
            consumer.call_soon(consumer.add_task_queue, queue)


def _roles() -> list[Role]:
    wanted = os.environ.get(ROLES_VARIABLE, "all")
    named = {part.strip() for part in wanted.split(",")}
    unknown = named - {*ROLES, "all"}
    if unknown:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"{ROLES_VARIABLE} names {', '.join(sorted(unknown))}, which is no worker role.",
            mend="Use all, controllers or scheduler.",
        )
    return [role for role in ROLES if role in named or "all" in named]
