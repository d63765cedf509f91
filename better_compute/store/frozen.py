"""A clock that stands still: ``compute_now()`` becomes a fixed time plus the settable offset. For simulations only.

Needs the role that owns the function; whoever else works on the database sees the same time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

DEFINITION: Final = "SELECT pg_get_functiondef('compute_now()'::regprocedure)"

FREEZE: Final = """
CREATE OR REPLACE FUNCTION compute_now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN timestamptz '2030-01-01 00:00:00+00'
  + COALESCE((SELECT c.clock_offset FROM compute_clock c), interval '0')
"""

SET_OFFSET: Final = "UPDATE compute_clock SET clock_offset = %s::interval"


def freeze(cursor: Any) -> str:
    """Let the time stand still at the offset zero; returns what :func:`thaw` needs."""
    cursor.execute(DEFINITION)
    definition = str(cursor.fetchone()[0])
    cursor.execute(FREEZE)
    set_offset(cursor, timedelta(0))
    return definition


def set_offset(cursor: Any, offset: timedelta) -> None:
    """Let it be ``offset`` after the fixed time."""
    cursor.execute(SET_OFFSET, [f"{offset.total_seconds()} s"])


def thaw(cursor: Any, definition: str) -> None:
    """Make the time what it was."""
    cursor.execute(definition)
    set_offset(cursor, timedelta(0))


NEXT_WAIT: Final = """
SELECT EXTRACT(EPOCH FROM min(not_before) - compute_now())
FROM compute_work WHERE kind = ANY(%s) AND every_ms IS NULL
"""


def next_wait(cursor: Any, kinds: list[str]) -> float | None:
    """Seconds until the earliest key of ``kinds`` is due; None when none but periodic ones are queued."""
    cursor.execute(NEXT_WAIT, [kinds])
    seconds = cursor.fetchone()[0]
    return None if seconds is None else max(0.0, float(seconds))
