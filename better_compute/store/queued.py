"""Reading the work table in pages, for operators. Takes no locks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connections

from better_compute import conf

# Follows the primary key; a filter on attempts only leaves rows out.
PAGE: Final = """
SELECT kind, key, shard, generation, not_before, enqueued_at, attempts, last_error, last_error_at
FROM compute_work
WHERE (kind, key) > (%(kind)s, %(key)s) AND (%(only)s::text IS NULL OR kind = %(only)s) AND attempts >= %(attempts)s
ORDER BY kind, key LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Queued:
    """A queued key."""

    kind: str
    key: str
    shard: int
    generation: int
    not_before: datetime
    enqueued_at: datetime
    attempts: int
    last_error: str | None
    last_error_at: datetime | None


def page(*, after: tuple[str, str], kind: str | None, attempts: int, limit: int) -> list[Queued]:
    """Up to ``limit`` keys behind ``after``, of one kind or all, that failed at least ``attempts`` times."""
    with connections[conf.current().database].cursor() as cursor:
        where = {"kind": after[0], "key": after[1], "only": kind, "attempts": attempts, "limit": limit}
        cursor.execute(PAGE, where)
        return [Queued(*row) for row in cursor.fetchall()]
