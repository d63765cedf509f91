"""What running a module leaves in the core's tables, and how it is deleted when the module is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

COUNT = """
SELECT (SELECT count(*) FROM compute_work WHERE kind = ANY(%(kinds)s)),
       (SELECT count(*) FROM compute_leases WHERE name = ANY(%(leases)s)),
       (SELECT count(*) FROM compute_pauses WHERE scope = ANY(%(scopes)s))
"""
# Lock order: leases by name, then work rows, as a fenced transaction that enqueues takes them; a statement of its own
# each, since the parts of one run in no order. A lease that is held is deleted too: its holder's next fence finds no
# row and rolls back.
LOCK_LEASES = "SELECT FROM compute_leases WHERE name = ANY(%(leases)s) ORDER BY name FOR UPDATE"
FORGET = """
WITH leases AS (DELETE FROM compute_leases WHERE name = ANY(%(leases)s) RETURNING 1),
     work AS (DELETE FROM compute_work WHERE kind = ANY(%(kinds)s) RETURNING 1),
     pauses AS (DELETE FROM compute_pauses WHERE scope = ANY(%(scopes)s) RETURNING 1)
SELECT (SELECT count(*) FROM work), (SELECT count(*) FROM leases), (SELECT count(*) FROM pauses)
"""


@dataclass(frozen=True, slots=True)
class Traces:
    """How many rows of each table belong to a module's reconcilers."""

    work: int
    leases: int
    pauses: int


def count(connection: BaseDatabaseWrapper, reconcilers: Sequence[str]) -> Traces:
    """What the reconcilers of these names have left; reads only."""
    return _run(connection, COUNT, reconcilers)


def forget(connection: BaseDatabaseWrapper, reconcilers: Sequence[str]) -> Traces:
    """Delete it, in the transaction that is open."""
    return _run(connection, FORGET, reconcilers, before=LOCK_LEASES)


def _run(connection: BaseDatabaseWrapper, statement: str, reconcilers: Sequence[str], before: str = "") -> Traces:
    names = {
        "kinds": list(reconcilers),
        "leases": [f"singleton:{name}" for name in reconcilers],
        "scopes": [f"kind:{name}" for name in reconcilers],
    }
    with connection.cursor() as cursor:
        if before:
            cursor.execute(before, names)
        cursor.execute(statement, names)
        return Traces(*cursor.fetchone())
