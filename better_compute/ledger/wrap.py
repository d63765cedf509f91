"""Django's own ``migrate`` command with our executor, so that nothing a Django user does goes round the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from django.core.management.commands import migrate as django_migrate
from django.db.backends.base.base import BaseDatabaseWrapper

from better_compute import conf
from better_compute.ledger import drift, engine, roles, run
from better_compute.ledger.executor import LedgerExecutor, Progress
from better_compute.ledger.turn import LOCK_WAIT_S, Say, turn

# Django's command finds its executor by a name of its module, which is one for all threads.
_swapping = Lock()


@contextmanager
def wrapped(
    using: str, *, dry: bool, allow_fake: bool = False, say: Say | None = None, lock_wait: float = LOCK_WAIT_S
) -> Iterator[None]:
    """Let Django's ``migrate`` command run inside with the lock, the order and the ledger.

    A database that the host's routers keep compute out of is migrated as Django does it, and so is every
    one when ``COMPUTE["WRAP_MIGRATE"]`` is False.

    Parameters
    ----------
    using
        Alias that the command migrates.
    dry
        Nothing will be written (``--plan``, ``--check``), so neither lock nor drift matters; only the order.
    """
    if not conf.current().wrap_migrate or not engine.keeps_ledger(using):
        yield
        return
    connection = engine.connect(using)
    hosted = run.hosted_modules()
    if dry:
        with _swapped(lambda connection, progress: run.executor_for(connection, hosted, progress)):
            yield
        return
    roles.refuse(connection)
    built: list[LedgerExecutor] = []
    with turn(connection, wait=lock_wait, say=say) as backend:

        def build(connection: BaseDatabaseWrapper, progress: Progress | None) -> LedgerExecutor:
            executor = run.executor_for(connection, hosted, progress, backend=backend, allow_fake=allow_fake)
            drift.refuse(executor)
            built.append(executor)
            return executor

        with _swapped(build):
            try:
                yield
            except Exception:
                # The command's own errors pass; those of a migration get its name.
                if not built:
                    raise
                with run.naming_failures(built[-1]):
                    raise
        roles.grant(connection)


@contextmanager
def _swapped(build: Callable[[BaseDatabaseWrapper, Progress | None], LedgerExecutor]) -> Iterator[None]:
    command: Any = django_migrate

    def executor(connection: BaseDatabaseWrapper, progress_callback: Progress | None = None) -> LedgerExecutor:
        return build(connection, progress_callback)

    with _swapping:
        original = command.MigrationExecutor
        command.MigrationExecutor = executor
        try:
            yield
        finally:
            command.MigrationExecutor = original
