"""Whether what only grows is cut as it should be, and partitions are there for what comes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from better_compute import conf
from better_compute.contract.findings import Finding
from better_compute.store import retention

#: How long retention may be late before it is told: many of its periods.
LATE: Final = timedelta(hours=6)
#: How far ahead of the present there must be partitions, in widths of one.
AHEAD: Final = 1

_FIX: Final = "See under Work whether core.partition-retention runs, is paused or fails, and start a worker."


def partitions(using: str) -> Iterator[Finding]:
    """Tables whose partitions are missing, or stay longer than they should."""
    settings = conf.current().retention
    kept = {
        "compute_outbox": ("OUTBOX_MS", settings.outbox_ms),
        "compute_audit_events": ("AUDIT_MS", settings.audit_ms),
    }
    for state in retention.states(using):
        key, keep_ms = kept.get(state.relation, ("", 0))
        yield from _missing(state)
        if keep_ms:
            yield from _behind(state, f"COMPUTE['RETENTION'][{key!r}]", timedelta(milliseconds=keep_ms))


def answers(using: str) -> Iterator[Finding]:
    """Answers kept for Idempotency-Key that should be gone."""
    age = retention.oldest_expired(using)
    if age is not None and age > LATE:
        yield Finding(
            check="retention.idempotency-behind",
            severity="warning",
            message=f"Answers kept for an Idempotency-Key expired {_hours(age)} ago and are still there.",
            fix="See under Work whether core.idempotency-retention runs, is paused or fails, and start a worker.",
        )


def _missing(state: retention.State) -> Iterator[Finding]:
    spilled = state.oldest_spilled_at
    if spilled is not None and state.now - spilled > max(LATE, AHEAD * state.width):
        yield Finding(
            check="retention.default-rows",
            severity="warning",
            message=f"{state.relation} has rows since {spilled:%Y-%m-%d %H:%M} UTC for which there was no partition; "
            "they cannot be dropped.",
            fix=f"{_FIX} Where calls keep the table busy, call compute_retention_step('{state.relation}') as its owner "
            "while they are few.",
        )
    elif state.partitions and (state.covered_until is None or state.covered_until - state.now < AHEAD * state.width):
        until = "now" if state.covered_until is None else f"{state.covered_until:%Y-%m-%d %H:%M} UTC"
        yield Finding(
            check="retention.partitions-missing",
            severity="warning",
            message=f"{state.relation} has partitions until {until} only; later rows go to the default one.",
            fix=_FIX,
        )


def _behind(state: retention.State, setting: str, keep: timedelta) -> Iterator[Finding]:
    if keep < state.floor:
        yield Finding(
            check="retention.below-floor",
            severity="warning",
            message=f"{setting} is {_hours(keep)}, but the database keeps {state.relation} for "
            f"{_hours(state.floor)} at least.",
            fix="Raise the setting, or let the owner lower compute_retention.floor.",
        )
    ended = state.oldest_ends_at
    if ended is None or state.now - ended <= max(keep, state.floor) + LATE:
        return
    held = f" {state.slowest_reader} is the reader that is furthest behind." if state.slowest_reader else ""
    yield Finding(
        check="retention.behind",
        severity="warning",
        message=f"The oldest partition of {state.relation} ended {_hours(state.now - ended)} ago and is still there."
        f"{held}",
        fix=_FIX + (" Mend that reader: nothing that it has not handled is dropped." if held else ""),
    )


def _hours(age: timedelta) -> str:
    hours = int(age.total_seconds() // 3_600)
    return f"{hours // 24} d {hours % 24} h" if hours >= 48 else f"{hours} h"
