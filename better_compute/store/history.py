"""How deep each queue was, minute by minute (schema/0010_queue_history.sql), written by one lease holder."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import connections

from better_compute import conf
from better_compute.store import overview, transaction

#: How long a minute is kept; 2,880 rows at most.
KEPT: Final = timedelta(hours=48)
#: Keys of one kind that a sample counts; one more means "more than this many".
CAP: Final = 50_000

# Counts as the pages and /metrics do, by index and up to the cap. The kind that samples is left out: whenever it
# looks, its own key is due. Locks its own new row only.
RECORD: Final = f"""
INSERT INTO compute_queue_history (at, kinds, due, future, failing, oldest_due_s)
SELECT compute_now(), COALESCE(array_agg(kind), '{{}}'), COALESCE(array_agg(due::integer), '{{}}'),
       COALESCE(array_agg(future::integer), '{{}}'), COALESCE(array_agg(failing::integer), '{{}}'),
       COALESCE(array_agg(COALESCE(GREATEST(EXTRACT(EPOCH FROM compute_now() - oldest_due_at), 0), 0)::integer), '{{}}')
FROM ({overview.DEPTH}) AS queue
WHERE kind <> %(own)s
ON CONFLICT (at) DO NOTHING
"""  # noqa: S608 - its own statement

PURGE: Final = "DELETE FROM compute_queue_history WHERE at < compute_now() - %s::interval"

# The highest of each slot, so that a short peak is not averaged away. A slot without a row was not sampled; one
# with a row of no kind was, and nothing was queued.
READ: Final = """
SELECT LEAST(floor(EXTRACT(EPOCH FROM sample.at - clock.since) / %(step_s)s)::integer, %(slots)s - 1) AS slot,
       queue.kind, max(queue.due), max(queue.future), max(queue.failing), max(queue.oldest_due_s),
       COALESCE(max(queue.due) FILTER (WHERE sample.at = clock.newest), 0)
FROM (SELECT compute_now() - %(step_s)s * %(slots)s * interval '1 second' AS since,
             (SELECT max(at) FROM compute_queue_history) AS newest) clock
JOIN compute_queue_history sample ON sample.at > clock.since
LEFT JOIN LATERAL unnest(sample.kinds, sample.due, sample.future, sample.failing, sample.oldest_due_s)
  AS queue (kind, due, future, failing, oldest_due_s) ON true
GROUP BY slot, queue.kind
ORDER BY slot, queue.kind
"""


@dataclass(frozen=True, slots=True)
class Depth:
    """The highest figures of one kind in one slot; ages in seconds."""

    due: int = 0
    future: int = 0
    failing: int = 0
    oldest_due_s: int = 0
    #: Due keys in the newest sample of all; 0 in every slot but its own.
    newest: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Equal slots of time, oldest first. A slot that is None was not sampled; a kind it lacks had nothing queued."""

    until: datetime
    step: timedelta
    slots: list[dict[str, Depth] | None] = field(default_factory=list)

    @property
    def since(self) -> datetime:
        """When the first slot begins."""
        return self.until - self.step * len(self.slots)

    @property
    def kinds(self) -> list[str]:
        """Every kind that was seen, in code-point order."""
        return sorted({kind for slot in self.slots if slot for kind in slot})


def record(own: str) -> None:
    """Write down how deep every queue is now, but for the kind ``own``, and forget what is older than :data:`KEPT`."""
    alias = transaction.require_open("A sample of the queues")
    overview.read_by_index(alias)
    with connections[alias].cursor() as cursor:
        cursor.execute(RECORD, {"cap": CAP, "own": own})
        cursor.execute(PURGE, [f"{KEPT.total_seconds()} s"])


def read(now: datetime, *, step: timedelta, slots: int) -> History:
    """The last ``slots`` steps until ``now``, which is the database's time; nothing is locked."""
    found: list[dict[str, Depth] | None] = [None] * slots
    with connections[conf.current().database].cursor() as cursor:
        cursor.execute(READ, {"step_s": int(step.total_seconds()), "slots": slots})
        for slot, kind, *figures in cursor.fetchall():
            depths = found[slot] or {}
            if kind is not None:
                depths[kind] = Depth(*figures)
            found[slot] = depths
    return History(now, step, found)
