"""The broker queues of members: one each, gone when the member is.

Whoever buries a member, or is one that leaves, deletes its queue on a thread of its own: a broker that is down
delays no burial. What is missed so, or is sent to a dead member's queue by someone who does not know yet, expires.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from threading import Thread
from typing import Any, Final

from kombu.entity import Exchange, Queue

log: Final = logging.getLogger(__name__)

#: A queue that nobody consumes for so long is the broker's to delete; a worker that comes back declares it again.
UNUSED_SECONDS: Final = 600
#: How long deleting waits for a broker that does not answer.
PATIENCE_SECONDS: Final = 5.0
#: How long an exchange with a Redis-compatible broker may take where the host set nothing: a broker that stands still
#: closes no connection, and whoever waits for its answer, a worker's main thread too, would wait for good.
ANSWER_SECONDS: Final = 10.0


def bound(app: Any) -> None:
    """Give the exchanges of ``app`` with a Redis-compatible broker a deadline, where the host has set none."""
    if app.connection_for_write().transport.driver_type != "redis":
        return
    given = app.conf.broker_transport_options or {}
    # A consumer's own wait for messages must be able to end first.
    seconds = max(ANSWER_SECONDS, 2.0 * (given.get("polling_interval") or 0))
    app.conf.broker_transport_options = {"socket_timeout": seconds, "socket_connect_timeout": seconds, **given}


def name_of(member: str) -> str:
    """The queue that only ``member``'s worker consumes."""
    return f"compute.{member}"


def queue_of(member: str) -> Any:
    """The queue as senders, its worker and whoever deletes it declare it: a broker refuses two shapes of one."""
    name = name_of(member)
    return Queue(name, Exchange(name, type="direct", auto_delete=True), routing_key=name, expires=UNUSED_SECONDS)  # type: ignore[no-untyped-call]


def delete(app: Any, members: Collection[str]) -> Thread:
    """Delete the queues of ``members`` off the calling thread, once; what fails is logged and left to expire."""
    thread = Thread(target=_delete, args=(app, sorted(members)), name="compute-queues", daemon=True)
    thread.start()
    return thread


def _delete(app: Any, members: Collection[str]) -> None:
    try:
        with app.connection_for_write(connect_timeout=PATIENCE_SECONDS) as connection:
            connection.ensure_connection(max_retries=1, timeout=PATIENCE_SECONDS)
            for member in members:
                # A transport may know only of bindings that its own process has declared.
                queue = queue_of(member)(connection.default_channel)
                queue.declare()
                queue.delete()
    except Exception as error:
        log.info("the queues of %d ended members are left to expire: %s", len(members), error)
