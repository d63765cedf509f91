"""Leaves one rule of the engine out, so that a harness can show that it finds the harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from better_compute.store import ends, fence, leases, passes

GENERATION = " AND queued.generation = ran.generation"
INCARNATION = " AND queued.id = ran.id"
FENCE_LOCK = "\nFOR KEY SHARE OF lease"
TAKEN_LOCK = "FOR UPDATE OF lease SKIP LOCKED"
FINISHES = ((ends, "FINISH_DONE"), (passes, "FINISH_AND_CLAIM"))
FENCES = ((fence, "ONE"), (fence, "ALL"), (fence, "_PREPARE"))
UNIQUE_INDEX = "compute_leases_name_epoch_key"


def _replace(module: Any, name: str, old: str, new: str) -> None:
    sql = getattr(module, name)
    if old not in sql:
        raise AssertionError(f"{name} does not say {old!r} any more; follow it here")
    setattr(module, name, sql.replace(old, new))


def _without_generation() -> None:
    for module, name in FINISHES:
        _replace(module, name, GENERATION, "")


def _without_incarnation() -> None:
    """A finish that matches the generation alone, which a row made anew begins at 1 again."""
    for module, name in FINISHES:
        _replace(module, name, INCARNATION, "")


def _without_lock() -> None:
    for module, name in FENCES:
        _replace(module, name, FENCE_LOCK, "")


def _without_unique() -> None:
    """The takeover relies on the index alone to conflict with the fence; without the index nothing does."""
    _replace(leases, "ACQUIRE", TAKEN_LOCK, "FOR NO KEY UPDATE OF lease SKIP LOCKED")


RULES: dict[str, Callable[[], None]] = {
    "generation": _without_generation,
    "incarnation": _without_incarnation,
    "lock": _without_lock,
    "unique": _without_unique,
}

#: What must be undone in the schema besides, for a rule that PostgreSQL keeps.
SCHEMA = {"unique": f"ALTER TABLE compute_leases DROP CONSTRAINT {UNIQUE_INDEX}"}


def leave_out(rule: str) -> None:
    """Patch this process."""
    RULES[rule]()
