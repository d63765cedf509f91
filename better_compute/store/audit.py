"""Audit records (schema/0004_audit.sql): what was done or refused, hashed so that a later seal can prove it.

A record's leaf hash is that of RFC 6962, section 2.1, over ``salt || canonical``: SHA-256(0x00 || salt ||
canonical). The salt keeps the hash of an erased record from being guessed.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from django.db import connections

from better_compute.store import transaction

Outcome = Literal["allowed", "denied", "failed"]

#: Version of the canonical form; a reader of old records branches on it.
FORM: Final = 1

#: Longest id of a resource that a record keeps whole, in characters.
LONGEST_ID: Final = 1_024

#: What a record is inserted with, and all that the role that serves may insert.
COLUMNS: Final = (
    *("id", "at", "tenant_id", "principal", "method", "action", "resource_type", "resource_id"),
    *("outcome", "code", "request_id", "canonical", "salt", "leaf_hash"),
)

INSERT = f"INSERT INTO compute_audit_events ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))})"  # noqa: S608 - its own columns

# One descent of the index on tenant and time, in one partition.
KEPT = """
SELECT EXISTS (SELECT FROM compute_audit_events
               WHERE tenant_id = %s AND at = %s AND request_id = %s AND outcome = 'allowed')
"""

_canonical = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One act. ``tenant_id`` is empty for the installation itself; ``code`` is None for what was allowed."""

    at: datetime
    tenant_id: str
    principal: str
    method: str
    action: str
    resource_type: str
    resource_id: str
    outcome: Outcome
    code: str | None
    request_id: str


def bounded(resource_id: str) -> str:
    """The id as a record keeps it: one that is longer than :data:`LONGEST_ID` is cut and ends in its SHA-256.

    A refusal is recorded of whatever was asked for, and records are kept for long.
    """
    if len(resource_id) <= LONGEST_ID:
        return resource_id
    digest = hashlib.sha256(resource_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{resource_id[: LONGEST_ID - 80]}...sha256:{digest}"


def canonical(record_id: uuid.UUID, record: Record) -> bytes:
    """The bytes that are hashed: UTF-8 JSON, keys sorted, no white space, time in UTC with microseconds."""
    members: dict[str, Any] = {
        "form": FORM,
        "id": str(record_id),
        "at": record.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "tenantId": record.tenant_id,
        "principal": record.principal,
        "method": record.method,
        "action": record.action,
        "resourceType": record.resource_type,
        "resourceId": record.resource_id,
        "outcome": record.outcome,
        "code": record.code,
        "requestId": record.request_id,
    }
    return _canonical.encode(members)


def leaf_hash(salt: bytes, canonical_bytes: bytes) -> bytes:
    """SHA-256(0x00 || salt || canonical)."""
    return hashlib.sha256(b"\x00" + salt + canonical_bytes).digest()


def was_kept(record: Record) -> bool:
    """Whether the act of ``record`` stands in the trail as allowed, because a commit that got no answer was kept."""
    with connections[transaction.require_open("A look at the audit trail")].cursor() as cursor:
        cursor.execute(KEPT, [record.tenant_id, record.at, record.request_id])
        return bool(cursor.fetchone()[0])


def insert(record: Record) -> None:
    """Insert a record at the end of the open transaction. Takes no lock that another writer waits for."""
    transaction.require_open("An audit record")
    record_id = uuid.uuid4()
    salt = secrets.token_bytes(16)
    text = canonical(record_id, record)
    values = [
        record_id,
        record.at,
        record.tenant_id,
        record.principal,
        record.method,
        record.action,
        record.resource_type,
        record.resource_id,
        record.outcome,
        record.code,
        record.request_id,
        text,
        salt,
        leaf_hash(salt, text),
    ]
    transaction.at_end(INSERT, values)
