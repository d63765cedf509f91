"""What an operator has paused during an incident (schema/0002_work.sql)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

PAUSE = """
INSERT INTO compute_pauses (scope, reason, paused_by, paused_at) VALUES (%s, %s, %s, compute_now())
ON CONFLICT (scope) DO UPDATE SET reason = EXCLUDED.reason, paused_by = EXCLUDED.paused_by
"""

RESUME = "DELETE FROM compute_pauses WHERE scope = %s"

SCOPES = "SELECT scope FROM compute_pauses"

LISTED = "SELECT scope, reason, paused_by, paused_at FROM compute_pauses ORDER BY scope"


@dataclass(frozen=True, slots=True)
class Pause:
    """A paused scope: ``kind:<reconciler>`` or ``member:<id>``; who paused it, why and since when."""

    scope: str
    reason: str
    by: str
    since: datetime


def pause(cursor: Any, scope: str, *, reason: str, by: str) -> None:
    """Pause ``scope``; one that is paused keeps its time and gets the new reason."""
    cursor.execute(PAUSE, [scope, reason, by])


def resume(cursor: Any, scope: str) -> bool:
    """Let ``scope`` go on; False when it was not paused."""
    cursor.execute(RESUME, [scope])
    return int(cursor.rowcount) == 1


def listed(cursor: Any) -> list[Pause]:
    """Everything that is paused, by scope."""
    cursor.execute(LISTED)
    return [Pause(*row) for row in cursor.fetchall()]


def scopes(cursor: Any) -> frozenset[str]:
    """What is paused, as :class:`Pause` names it."""
    cursor.execute(SCOPES)
    return frozenset(scope for (scope,) in cursor.fetchall())
