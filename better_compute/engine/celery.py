"""One line in the host's Celery app: ``install_celery(app)``.

Celery carries hints only. A hint is acknowledged when it is received, expires soon, and is sent to the queue of
the member that holds the lease; losing one costs a poll interval. The table is the truth.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Final

from celery import Celery

from better_compute import conf
from better_compute.engine.bootstep import ComputeStep
from better_compute.engine.queues import bound, queue_of
from better_compute.engine.wakeup import Coalescer
from better_compute.store import leases, transaction
from better_compute.store.session import Session
from better_compute.store.wakeups import Pair

log: Final = logging.getLogger(__name__)

DRAIN: Final = "compute.drain"
#: A hint older than this says nothing that a poll has not found.
EXPIRES_SECONDS: Final = 30
#: How long the task waits for the runtime, so that the work shows in Celery's own tools.
WAIT_SECONDS: Final = 2.0


def install_celery(app: Celery) -> Coalescer:
    """Host the worker runtime in the workers of ``app``, and send hints through its broker after commits.

    Hints are sent by every process that imports the app, so import it in the project's ``__init__.py``, as Celery
    advises for Django: the processes that serve HTTP commit most of the work. Returns what gathers the hints.
    """
    app.steps["worker"].add(ComputeStep)
    app.conf.broker_connection_retry = True
    app.conf.broker_connection_retry_on_startup = True
    # Celery gives up after 100 tries by default, and a worker without a broker still runs keys.
    app.conf.broker_connection_max_retries = None
    app.conf.worker_prefetch_multiplier = 1
    app.task(name=DRAIN, ignore_result=True, acks_late=False, expires=EXPIRES_SECONDS)(drain)
    hints = Hints(app)
    coalescer = Coalescer("compute-hints", hints.send, hints.close)
    transaction.wake_with(coalescer.note)
    return coalescer


def drain(pairs: list[list[Any]]) -> None:
    """The task: have the runtime of this process look at (kind, shard) pairs, and wait for it a little."""
    runtime = ComputeStep.runtime
    if runtime is not None:
        runtime.wake([(kind, shard) for kind, shard in pairs])
        runtime.wait_idle(WAIT_SECONDS)


class Hints:
    """Sends one message to each member that holds leases of what was committed."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._bound = False
        self._session: Session | None = None
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        # The socket is the parent's; psycopg lets go of it without a word to the server.
        self._session = None

    def send(self, pairs: set[Pair]) -> None:
        """Look up the holders and tell each of them its pairs."""
        if not self._bound:
            # Not before: the host's settings are complete when something is committed, and not when this is installed.
            bound(self._app)
            self._bound = True
        for member, theirs in sorted(self._by_holder(pairs).items()):
            self._app.send_task(
                DRAIN,
                args=[theirs],
                queue=queue_of(member),
                expires=EXPIRES_SECONDS,
                ignore_result=True,
                retry=False,
            )

    def close(self) -> None:
        """Let go of the connection."""
        if self._session is not None:
            self._session.close()

    def _by_holder(self, pairs: set[Pair]) -> dict[str, list[Pair]]:
        if self._session is None:
            self._session = Session(conf.current().database, "compute-hints", {"statement_timeout": "2s"}, patience=4)
        with self._session.cursor() as cursor:
            holders = leases.held(cursor)
        found: dict[str, list[Pair]] = {}
        for kind, shard in sorted(pairs):
            for name in leases.names_for(kind, shard):
                if name in holders:
                    found.setdefault(holders[name][0], []).append((kind, shard))
        return found
