"""Hosts the runtime in a Celery worker: started with it, stopped with it, and alive while the broker is down."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from threading import Event, Thread
from typing import Any, ClassVar, Final

from celery import bootsteps, signals
from celery.platforms import EX_FAILURE, EX_OK
from celery.worker import state
from django.db import InterfaceError, OperationalError, connections

from better_compute import conf, ledger
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.reconcilers import Role
from better_compute.engine import hosting, queues
from better_compute.engine.observing import server
from better_compute.engine.runtime import ROLES, Runtime, connections_held
from better_compute.store.failures import describe_failure, trace_failure

log: Final = logging.getLogger(__name__)

#: Comma-separated roles of this worker process; ``compute_serve --roles`` sets it.
ROLES_VARIABLE: Final = "COMPUTE_ROLES"
#: One process is one member, so handlers must run in the process that the step runs in.
POOLS: Final = ("celery.concurrency.thread", "celery.concurrency.solo")
LOOK_SECONDS: Final = 1.0
#: How long a worker that has given everything back waits for Celery's consumer to end.
STUCK_SECONDS: Final = 10.0
#: How long a worker that ends waits for its queues to be deleted.
FAREWELL_SECONDS: Final = 0.5


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
        queues.bound(worker.app)
        self._stopping = Event()
        self._stopped = Event()
        self._thread: Thread | None = None
        #: By role, the member whose queue is consumed.
        self._members: dict[str, str] = {}

    def start(self, worker: Any) -> None:
        """Begin to wait for the store; returns at once, so that the worker can be stopped meanwhile."""
        self._stopping.clear()
        self._stopped.clear()
        signals.worker_shutting_down.connect(self._retire, sender=worker.hostname, weak=False)
        self._thread = Thread(target=self._begin, args=(worker,), name="compute-start", daemon=True)
        self._thread.start()

    def stop(self, worker: Any) -> None:
        """Give back the leases and stop the modules."""
        signals.worker_shutting_down.disconnect(self._retire, sender=worker.hostname)
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        hosting.stop()
        self._stopped.set()
        ComputeStep.runtime = None
        if self._members:
            queues.delete(worker.app, list(self._members.values())).join(FAREWELL_SECONDS)
            self._members.clear()

    terminate = stop

    def _retire(self, **_: Any) -> None:
        """Begin to give the leases back at the signal: the main thread may be waiting for the broker.

        Runs in the signal's handler, so it only starts what :meth:`stop` waits for.
        """
        self._stopping.set()
        Thread(target=self._leave, name="compute-stop", daemon=True).start()

    def _leave(self) -> None:
        try:
            hosting.stop()
        except Exception as error:
            log.error("the modules did not stop well\n%s", trace_failure(error))
        if self._stopped.wait(STUCK_SECONDS):
            return
        # Celery's consumer tries to reach a broker that stands still without end, and never looks at the signal again.
        while state.active_requests:
            if self._stopped.wait(LOOK_SECONDS):
                return
        log.warning("Celery waits for a broker that does not answer; nothing runs here, so the process ends without it")
        os._exit(EX_OK)

    def _begin(self, worker: Any) -> None:
        try:
            self._run(worker)
        except Exception as error:
            if isinstance(error, ComputeError):
                log.critical("this worker cannot run: %s", error)
            else:
                log.critical("this worker cannot run: %s\n%s", describe_failure(error), trace_failure(error))
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
        runtime = Runtime(
            roles,
            on_join=lambda member: self._consume(worker, member),
            on_bury=lambda dead: queues.delete(worker.app, dead),
        )
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

    def _consume(self, worker: Any, member: str) -> None:
        """Consume the member's own queue from now on, in place of the one that its role had before it."""
        role = member.rpartition("/")[0]
        former = self._members.get(role)
        self._members[role] = member
        worker.app.amqp.queues.select_add(queues.queue_of(member))
        consumer: Any = getattr(worker, "consumer", None)
        if getattr(consumer, "task_consumer", None) is None:
            # It has not reached the broker yet, and then consumes what is selected.
            consumer = None
        else:
            consumer.call_soon(consumer.add_task_queue, queues.name_of(member))
        if former is None:
            return
        if consumer is None:
            worker.app.amqp.queues.deselect(queues.name_of(former))
        else:
            consumer.call_soon(consumer.cancel_task_queue, queues.name_of(former))
        queues.delete(worker.app, [former])


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
