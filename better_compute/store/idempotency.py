"""Answers kept for Idempotency-Key (schema/0007_idempotency.sql).

Lock order: the advisory lock of a claim comes before every row lock that the method takes. It is only ever
tried, never waited for, so it cannot be part of a deadlock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from django.db import connections

from better_compute.store import transaction

LOCK: Final = "SELECT pg_try_advisory_xact_lock(%s)"

# A statement of its own after the lock: its snapshot then sees what the holder before us committed.
READ: Final = """
SELECT input_hash, answer FROM compute_idempotency
WHERE principal = %s AND tenant_id = %s AND method = %s AND key = %s AND expires_at > compute_now()
"""

# For a repetition whose record is gone, so that nothing else tells its tenant. Takes no lock.
TENANT: Final = """
SELECT tenant_id FROM compute_idempotency
WHERE principal = %s AND method = %s AND key = %s AND input_hash = %s AND expires_at > compute_now() LIMIT 1
"""

# Meets a row only where one has expired: the advisory lock keeps every other writer of this key away.
KEEP: Final = """
INSERT INTO compute_idempotency AS kept
  (principal, tenant_id, method, key, input_hash, answer, request_id, expires_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, compute_now() + %s * interval '1 millisecond')
ON CONFLICT (principal, tenant_id, method, key) DO UPDATE SET
  input_hash = EXCLUDED.input_hash, answer = EXCLUDED.answer, request_id = EXCLUDED.request_id,
  created_at = compute_now(), expires_at = EXCLUDED.expires_at
"""

# SKIP LOCKED, so that a purge never waits for a call.
PURGE: Final = """
DELETE FROM compute_idempotency
WHERE (principal, tenant_id, method, key) IN (
  SELECT principal, tenant_id, method, key FROM compute_idempotency
  WHERE expires_at <= compute_now() ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A caller's key for one method in one tenant."""

    principal: str
    tenant_id: str
    method: str
    key: str

    def parts(self) -> list[str]:
        """In the order of the primary key."""
        return [self.principal, self.tenant_id, self.method, self.key]

    def lock_id(self) -> int:
        """A signed 64-bit number for the advisory lock."""
        text = "\x00".join(["better_compute.idempotency", *self.parts()])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that was kept, and the hash of the input it answered."""

    input_hash: bytes
    answer: bytes


def lock(claim: Claim) -> bool:
    """Claim the key until the transaction ends; False when another call holds it."""
    alias = transaction.require_open("An idempotency claim")
    with connections[alias].cursor() as cursor:
        cursor.execute(LOCK, [claim.lock_id()])
        return bool(cursor.fetchone()[0])


def read(claim: Claim) -> Kept | None:
    """The answer kept for a key, None when there is none or it has expired; of a claimed key, that is final."""
    alias = transaction.require_open("An idempotency claim")
    with connections[alias].cursor() as cursor:
        cursor.execute(READ, claim.parts())
        row = cursor.fetchone()
    return None if row is None else Kept(bytes(row[0]), bytes(row[1]))


def tenant_of(claim: Claim, input_hash: bytes) -> str | None:
    """The tenant in which the caller made this very call before under this key, None when it has not."""
    alias = transaction.require_open("An idempotency claim")
    with connections[alias].cursor() as cursor:
        cursor.execute(TENANT, [claim.principal, claim.method, claim.key, input_hash])
        row = cursor.fetchone()
    return None if row is None else str(row[0])


def keep(claim: Claim, kept: Kept, *, request_id: str, retention_ms: int) -> None:
    """Keep the answer of a claimed key; it commits with the call."""
    alias = transaction.require_open("An idempotency claim")
    with connections[alias].cursor() as cursor:
        cursor.execute(KEEP, [*claim.parts(), kept.input_hash, kept.answer, request_id, retention_ms])


def purge(limit: int) -> int:
    """Delete up to ``limit`` expired answers and return how many there were."""
    alias = transaction.require_open("A purge")
    with connections[alias].cursor() as cursor:
        cursor.execute(PURGE, [limit])
        return int(cursor.rowcount)
