"""The work queue: what waits too long, what keeps failing, and what nobody runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.db import connections

from better_compute import conf, registry
from better_compute.contract.findings import Finding
from better_compute.store import clock, health, overview, pauses

#: A key that is due for longer is a warning, and for longer still an error.
LATE: Final = timedelta(minutes=1)
TOO_LATE: Final = timedelta(minutes=10)
#: A transaction that is open for longer keeps the queue from being vacuumed.
OLD_SNAPSHOT: Final = timedelta(minutes=5)


def _counted(count: int) -> str:
    if count > overview.CAP:
        return f"more than {overview.CAP} keys are"
    return "1 key is" if count == 1 else f"{count} keys are"


def waiting(using: str) -> Iterator[Finding]:
    """Kinds with work that is due for too long, and kinds that no hosted module runs."""
    now = clock.now(using)
    hosted = registry.current().reconcilers
    for depth in overview.depth():
        queued = depth.due + depth.future
        if depth.kind not in hosted:
            yield Finding(
                check="work.unknown-kind",
                severity="warning",
                message=f"{depth.kind}: {_counted(queued)} queued, but no hosted module has this reconciler.",
                fix="Host its module in every process again, or delete the rows once it is gone for good.",
                count=queued,
            )
            continue
        age = timedelta(0) if depth.oldest_due_at is None else now - depth.oldest_due_at
        if age > LATE:
            yield Finding(
                check="work.oldest-due",
                severity="error" if age > TOO_LATE else "warning",
                message=f"{depth.kind}: {_counted(depth.due)} due, the oldest for {_span(age)}.",
                fix="Start a worker, give it more threads, or see under Work why its keys fail.",
                count=depth.due,
            )


def stuck(using: str) -> Iterator[Finding]:
    """Kinds with keys that failed again and again."""
    for found in health.stuck(using):
        keys = ", ".join(repr(key) for key in found.keys)
        yield Finding(
            check="work.stuck",
            severity="warning",
            message=f"{found.kind}: {_counted(found.count)} failing, up to {found.attempts} times in a row: {keys}"
            f"{' and more' if found.count > len(found.keys) else ''}.",
            fix="See the key's last error under Work; mend its cause, then requeue the key.",
            count=found.count,
        )


def long_running(using: str) -> Iterator[Finding]:
    """Kinds of which a worker has been running a key for longer than ``WORKER.HUNG_MS``."""
    allowed = timedelta(milliseconds=conf.current().worker.hung_ms)
    for found in health.long_running(using, allowed):
        keys = ", ".join(repr(key) for key in found.keys)
        running = "1 key has" if found.count == 1 else f"{found.count} keys have"
        yield Finding(
            check="work.long-running",
            severity="warning",
            message=f"{found.kind}: {running} been running for up to {_span(found.longest)} on {found.process}: {keys}"
            f"{' and more' if found.count > len(found.keys) else ''}; a run should end within {_span(allowed)}.",
            fix="See the worker's log for its stack. Answer SYNC_AGAIN between steps, raise WORKER.HUNG_MS, or restart "
            "a worker that hangs: its keys run elsewhere.",
            count=found.count,
        )


def snapshots(using: str) -> Iterator[Finding]:
    """Transactions open for so long that the queue's deleted rows pile up behind them."""
    found = health.old_snapshots(using, OLD_SNAPSHOT)
    if found:
        yield Finding(
            check="database.old-snapshot",
            severity="warning",
            message=f"A transaction has been open for {_span(found[0].age)}: {found[0].what}"
            f"{f', and {len(found) - 1} more' if len(found) > 1 else ''}; rows deleted since then cannot be removed, "
            "and every claim reads past them.",
            fix="End it (SELECT pg_terminate_backend(pid), or ROLLBACK PREPARED), and set "
            "idle_in_transaction_session_timeout for its role.",
            count=len(found),
        )


def paused(using: str) -> Iterator[Finding]:
    """What an operator has paused and may have forgotten."""
    with connections[using].cursor() as cursor:
        found = pauses.listed(cursor)
    for each in found:
        why = f": {each.reason}" if each.reason else ""
        what, _, name = each.scope.partition(":")
        yield Finding(
            check="work.paused",
            severity="warning",
            message=f"The {what} {name} has been paused by {each.by} since {each.since:%Y-%m-%d %H:%M} UTC{why}.",
            fix=f"Run `manage.py compute resume --{what} {name}` when the incident is over.",
        )


def _span(age: timedelta) -> str:
    """A duration as operators say it: ``3 min 20 s``, ``2 h 5 min``, ``4 d 1 h``."""
    seconds = int(age.total_seconds())
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s"
