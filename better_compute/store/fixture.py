"""Empties the core's tables for tests, append-only ones included. Only the owner role can."""

from __future__ import annotations

from typing import Final

from django.db import connections, transaction

from better_compute import conf

# Takes ACCESS EXCLUSIVE on every table at once, so that it fails whole where a table cannot be had.
CLEAR: Final = """
SET LOCAL lock_timeout = '10s';
ALTER TABLE compute_outbox DISABLE TRIGGER USER;
ALTER TABLE compute_audit_events DISABLE TRIGGER USER;
ALTER TABLE compute_outbox_default DISABLE TRIGGER USER;
ALTER TABLE compute_audit_events_default DISABLE TRIGGER USER;
TRUNCATE compute_idempotency, compute_work, compute_pauses, compute_leases, compute_workers, compute_processes,
  compute_outbox, compute_outbox_default, compute_audit_events, compute_audit_events_default;
ALTER TABLE compute_outbox ENABLE TRIGGER USER;
ALTER TABLE compute_audit_events ENABLE TRIGGER USER;
ALTER TABLE compute_outbox_default ENABLE TRIGGER USER;
ALTER TABLE compute_audit_events_default ENABLE TRIGGER USER;
UPDATE compute_clock SET clock_offset = interval '0', anchored_at = NULL;
"""


def clear(using: str | None = None) -> None:
    """Empty the tables in one transaction as the owner."""
    alias = using or conf.current().owner_database
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute(CLEAR)
