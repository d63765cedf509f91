"""Migrations that cannot surprise: one lock, hosted order, one commit for each, and a ledger of them all."""

from better_compute.ledger import drift, findings, graph, lint, removal
from better_compute.ledger.engine import connect, refusing
from better_compute.ledger.errors import (
    Drifted,
    LedgerError,
    LockLost,
    LockNotAcquired,
    MigrationFailed,
    Refused,
    Unreachable,
)
from better_compute.ledger.run import migrate, migrate_to, pending, planned, reader, rehash, targets
from better_compute.ledger.wrap import wrapped

__all__ = [
    "Drifted",
    "LedgerError",
    "LockLost",
    "LockNotAcquired",
    "MigrationFailed",
    "Refused",
    "Unreachable",
    "connect",
    "drift",
    "findings",
    "graph",
    "lint",
    "migrate",
    "migrate_to",
    "pending",
    "planned",
    "reader",
    "refusing",
    "rehash",
    "removal",
    "targets",
    "wrapped",
]
