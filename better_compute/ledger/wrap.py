"""Django's own ``migrate`` command with our executor, so that nothing a Django user does goes round the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from django.core.management.commands import migrate as django_migrate
from django.db.backends.base.base import BaseDatabaseWrapper

from better_compute.ledger import engine, run
from better_compute.ledger.executor import LedgerExecutor, Progress
from better_compute.ledger.turn import LOCK_WAIT_S, Say, turn

# Django's command finds its executor by a name of its module, which is one for all threads.
_swapping = Lock()


@contextmanager
def wrapped(using: str, *, dry: bool, say: Say | None = None, lock_wait: float = LOCK_WAIT_S) -> Iterator[None]:
    """Let Django's ``migrate`` command run inside with the lock, the order and the ledger.

    A database that the host's routers keep compute out of is migrated as Django does it.
    """
    if not engine.keeps_ledger(using):
        yield
        return
    connection = engine.connect(using)
    if dry:
        with _executor():
            yield
        return
    with turn(connection, wait=lock_wait, say=say) as backend, _executor(backend):
        yield


@contextmanager
def _executor(backend: int | None = None) -> Iterator[None]:
    hosted = run.hosted_modules()

    def build(connection: BaseDatabaseWrapper, progress: Progress | None = None) -> Any:
        return LedgerExecutor(connection, progress, owners=hosted, backend=backend)

    with _swapping:
        original = django_migrate.MigrationExecutor
        django_migrate.MigrationExecutor = build  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            django_migrate.MigrationExecutor = original  # type: ignore[misc]
