"""The advisory lock that makes migrators take turns. It is polled, never waited for.

A session blocked inside ``pg_advisory_lock`` holds a snapshot, which ``CREATE INDEX CONCURRENTLY`` in the
migrator that holds the lock would wait for: a deadlock. A poll holds nothing between two tries. The lock
belongs to the session, so it goes with a migrator that dies.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

#: Signed 64-bit key; PostgreSQL scopes it to the database.
KEY = int.from_bytes(hashlib.sha256(b"better_compute:migrate").digest()[:8], "big", signed=True)

#: How often the server looks whether a migrator whose statement runs is still there, in milliseconds.
DEATH_CHECK_MS = 2_000

TRY = "SELECT pg_try_advisory_lock(%s), pg_backend_pid()"
RELEASE = "SELECT pg_advisory_unlock(%s), pg_backend_pid()"
PID = "SELECT pg_backend_pid()"
BOUND = "SELECT set_config('lock_timeout', %s, true), pg_backend_pid()"
# While a statement runs the server looks at nothing else, so the lock of a migrator that was killed would stay as long
# as its statement goes on. PostgreSQL knows how to look at the client's socket on these systems only.
NAME = """
SELECT set_config('application_name', %s, false),
       CASE WHEN version() ~* 'linux|darwin|bsd' THEN set_config('client_connection_check_interval', %s, false) END
"""
HOLDER = """
SELECT activity.pid, activity.application_name, activity.usename, host(activity.client_addr)
FROM pg_locks AS held
JOIN pg_stat_activity AS activity USING (pid)
WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (held.classid::bigint << 32) | held.objid::bigint = %s
"""


@dataclass(frozen=True, slots=True)
class Holder:
    """The session that holds the lock, as ``pg_stat_activity`` shows it."""

    pid: int
    application: str
    role: str
    address: str

    def __str__(self) -> str:
        application = f" ({self.application})" if self.application else ""
        return f"PostgreSQL process {self.pid}{application}, role {self.role}, from {self.address or 'a local socket'}"


def try_acquire(connection: BaseDatabaseWrapper) -> int | None:
    """Take the lock if it is free. Returns the backend's process id, or None when it is held."""
    with connection.cursor() as cursor:
        cursor.execute(TRY, [KEY])
        acquired, pid = cursor.fetchone()
        return int(pid) if acquired else None


def release(connection: BaseDatabaseWrapper) -> tuple[bool, int]:
    """Give the lock back. Returns whether this session held it, and the backend's process id."""
    with connection.cursor() as cursor:
        cursor.execute(RELEASE, [KEY])
        released, pid = cursor.fetchone()
        return bool(released), int(pid)


def backend(connection: BaseDatabaseWrapper) -> int:
    """Process id of the backend that serves ``connection`` now."""
    with connection.cursor() as cursor:
        cursor.execute(PID)
        return int(cursor.fetchone()[0])


def bound_waits(connection: BaseDatabaseWrapper, lock_timeout_ms: int) -> int:
    """Let this transaction wait at most so long for a table lock. Returns the backend's process id."""
    with connection.cursor() as cursor:
        cursor.execute(BOUND, [str(lock_timeout_ms)])
        return int(cursor.fetchone()[1])


def name_session(connection: BaseDatabaseWrapper, name: str) -> None:
    """Show ``name`` as this session's application (at most 63 bytes are kept), and let the server notice its death."""
    with connection.cursor() as cursor:
        cursor.execute(NAME, [name, str(DEATH_CHECK_MS)])


def holder(connection: BaseDatabaseWrapper) -> Holder | None:
    """Who holds the lock, or None when nobody does (any more)."""
    with connection.cursor() as cursor:
        cursor.execute(HOLDER, [KEY])
        row = cursor.fetchone()
        return Holder(row[0], row[1] or "", row[2] or "", row[3] or "") if row else None
