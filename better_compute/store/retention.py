"""Retention: partitions made ahead and dropped whole, and rows that ended long ago deleted (schema/0011_retention.sql).

The role that serves may change no table. It asks a function of the owner, which keeps a floor of its own: whoever
takes over a process that serves can drop no partition that is younger, nor one that a reader still needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from django.db import connections

from better_compute.store import preamble, transaction

#: Longest that a statement of a step may run, in milliseconds: while the default partition becomes one of the times of
#: its rows, nobody writes.
STATEMENT_TIMEOUT_MS: Final = 30_000

# Locks: see the function.
STEP: Final = "SELECT did, partition FROM compute_retention_step(%s, %s * interval '1 millisecond')"

# SKIP LOCKED, so that a purge never waits for a call. Tokens are few, so no index serves it.
PURGE_TOKENS: Final = """
DELETE FROM compute_tokens WHERE id IN (
  SELECT id FROM compute_tokens
  WHERE least(revoked_at, expires_at) <= compute_now() - %s * interval '1 millisecond'
  LIMIT %s FOR UPDATE SKIP LOCKED)
"""

STATES: Final = """
SELECT rule.relation, rule.floor, rule.time_column, spill.name, ('1 ' || rule.step)::interval,
       count(p.name), min(p.to_at),
       (SELECT upper(span) FROM (
          SELECT range_agg(tstzrange(q.from_at, q.to_at)) AS times FROM compute_partitions(rule.relation) AS q
          WHERE NOT q.is_default) AS covered, unnest(covered.times) AS span WHERE span @> compute_now()),
       (SELECT h.name FROM compute_retention_holds AS h WHERE h.relation = rule.relation ORDER BY h.position LIMIT 1),
       compute_now()
FROM compute_retention AS rule
JOIN LATERAL compute_partitions(rule.relation) AS spill ON spill.is_default
LEFT JOIN LATERAL compute_partitions(rule.relation) AS p ON NOT p.is_default
GROUP BY rule.relation, spill.name
ORDER BY rule.relation
"""

# By the primary key, which follows insertion closely enough for a finding; the default partition is empty as a rule.
OLDEST_SPILLED: Final = "SELECT {column} FROM {spill} ORDER BY {key} LIMIT 1"

OLDEST_EXPIRED: Final = (
    "SELECT compute_now() - min(expires_at) FROM compute_idempotency WHERE expires_at <= compute_now()"
)

Did = Literal["ROLLED", "MADE", "DROPPED", "BUSY"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was done for a table, and the partition that it was done to; none for BUSY."""

    did: Did
    partition: str | None


@dataclass(frozen=True, slots=True)
class State:
    """How retention of a partitioned table stands."""

    relation: str
    floor: timedelta
    #: How much time one of its partitions covers.
    width: timedelta
    partitions: int
    #: When the oldest partition ends; None without one.
    oldest_ends_at: datetime | None
    #: Until when there are partitions without a gap; None when there is none for the present.
    covered_until: datetime | None
    #: Time of the oldest row that came while there was no partition for it.
    oldest_spilled_at: datetime | None
    #: The reader that is furthest behind.
    slowest_reader: str | None
    now: datetime


def step(relation: str, keep_ms: int | None) -> Step | None:
    """Do the next thing that retention of a partitioned table needs; None when there is nothing to do.

    Parameters
    ----------
    keep_ms
        Age at which a partition may be dropped; None drops nothing.
    """
    alias = transaction.require_open("A step of retention")
    with connections[alias].cursor() as cursor:
        cursor.execute(preamble.BOUND, [str(STATEMENT_TIMEOUT_MS)])
        cursor.execute(STEP, [relation, keep_ms])
        row = cursor.fetchone()
    return None if row is None else Step(*row)


def purge_tokens(keep_ms: int, limit: int) -> int:
    """Delete up to ``limit`` tokens that were revoked or expired ``keep_ms`` ago; returns how many there were."""
    alias = transaction.require_open("A purge")
    with connections[alias].cursor() as cursor:
        cursor.execute(PURGE_TOKENS, [keep_ms, limit])
        return int(cursor.rowcount)


def states(using: str) -> list[State]:
    """How every partitioned table stands, by name."""
    found = []
    with connections[using].cursor() as cursor:
        cursor.execute(STATES)
        for relation, floor, column, spill, width, count, oldest, covered, reader, now in cursor.fetchall():
            # The names are the catalog's own.
            key = "id" if column == "created_at" else column
            cursor.execute(OLDEST_SPILLED.format(column=column, spill=f'"{spill}"', key=key))
            row = cursor.fetchone()
            found.append(State(relation, floor, width, count, oldest, covered, row and row[0], reader, now))
    return found


def oldest_expired(using: str) -> timedelta | None:
    """For how long the oldest answer kept for an Idempotency-Key has been expired; None when none has."""
    with connections[using].cursor() as cursor:
        cursor.execute(OLDEST_EXPIRED)
        age: timedelta | None = cursor.fetchone()[0]
        return age
