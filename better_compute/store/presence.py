"""Which processes are up and which set of modules each hosts (compute_processes, schema/0002_work.sql)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import connections

#: How often a process says that it is up.
REFRESH: Final = timedelta(seconds=30)
#: A process that has been silent for longer counts as gone.
SILENT: Final = 3 * REFRESH
#: Rows of processes that ended without deleting theirs are swept after this long.
SWEEP: Final = timedelta(hours=1)

UPSERT = """
INSERT INTO compute_processes AS process
  (id, role, host, pid, fingerprint, modules, connections, started_at, seen_at)
VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s, compute_now(), compute_now())
ON CONFLICT (id) DO UPDATE SET seen_at = compute_now(), connections = EXCLUDED.connections
"""
DELETE = "DELETE FROM compute_processes WHERE id = %s"
# Nobody waits for anybody: rows that another process is touching are left to it.
SWEEP_SILENT = """
DELETE FROM compute_processes WHERE id IN (
  SELECT id FROM compute_processes
  WHERE seen_at < compute_now() - %s::interval ORDER BY id FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as it states itself; ``connections`` is how many to PostgreSQL it may hold at once."""

    id: UUID
    role: str
    host: str
    pid: int
    fingerprint: str
    modules: Sequence[str]
    connections: int


def say_up(process: Process, using: str) -> None:
    """Insert or refresh the row of ``process``; locks that row only."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            UPSERT,
            [
                process.id,
                process.role,
                process.host,
                process.pid,
                process.fingerprint,
                json.dumps(list(process.modules)),
                process.connections,
            ],
        )


def say_gone(id: UUID, using: str) -> None:
    """Delete the row of a process that stops."""
    with connections[using].cursor() as cursor:
        cursor.execute(DELETE, [id])


def sweep(using: str) -> None:
    """Delete rows of processes that have been silent for longer than ``SWEEP``."""
    with connections[using].cursor() as cursor:
        cursor.execute(SWEEP_SILENT, [f"{SWEEP.total_seconds()} s"])
