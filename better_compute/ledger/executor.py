"""Django's migration executor, in hosted order and with one commit for each compute migration.

It overrides only what is the same on Django 5.2 and 6.1: ``migration_plan``, ``apply_migration``,
``unapply_migration``, and the recorder.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState
from psycopg import errors as postgres

from better_compute.ledger.errors import LockLost, MigrationFailed, Refused
from better_compute.ledger.owners import Owner
from better_compute.ledger.recorder import LedgerRecorder
from better_compute.store import indexes, ledger_rows, migration_lock, tables

Progress = Callable[..., None]
Node = tuple[str, str]

#: How long a migration waits for a table lock before it gives way and tries again, in milliseconds.
LOCK_TIMEOUT_MS = 5_000
#: How often a migration tries to get its table locks before it fails.
ATTEMPTS = 10
#: Longest pause between two tries, in seconds.
MAX_PAUSE_S = 10.0


class LedgerExecutor(MigrationExecutor):
    """Runs migrations; those of hosted modules each in one durable transaction with their ledger row.

    Parameters
    ----------
    owners
        Hosted modules by Django label.
    backend
        Process id of the backend that holds the migration lock, or None when no lock is held (plans only).
    lock_timeout_ms
        How long each try of a migration waits for a table lock.
    allow_fake
        Whether hosted modules' migrations may be recorded without being run.
    unapplied_as
        What the ledger says of a migration that is unapplied: reverted, or removed with its module.
    """

    recorder: LedgerRecorder

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        progress_callback: Progress | None = None,
        *,
        owners: Mapping[str, Owner],
        backend: int | None = None,
        lock_timeout_ms: int = LOCK_TIMEOUT_MS,
        allow_fake: bool = False,
        unapplied_as: ledger_rows.Action = "reverted",
    ) -> None:
        super().__init__(connection, progress_callback)
        self.owners = owners
        self.backend = backend
        self.lock_timeout_ms = lock_timeout_ms
        self.allow_fake = allow_fake
        self.unapplied_as: ledger_rows.Action = unapplied_as
        self.recorder = LedgerRecorder(connection, owners, self.loader.disk_migrations)
        self.done: list[str] = []
        self.current: Migration | None = None
        self._passed: set[Migration] = set()

    def migrate(
        self,
        targets: Any,
        plan: Any = None,
        state: ProjectState | None = None,
        fake: bool = False,
        fake_initial: bool = False,
    ) -> ProjectState:
        """Run ``plan``; a fake of a hosted module's migration is refused before the first one runs."""
        if plan is None:
            plan = self.migration_plan(targets)
        if fake:
            self._refuse_fakes([migration for migration, _ in plan])
        return super().migrate(targets, plan=plan, state=state, fake=fake, fake_initial=fake_initial)

    def _refuse_fakes(self, migrations: Sequence[Migration]) -> None:
        names = [
            self.owners[each.app_label].ledger_name(each.name) for each in migrations if each.app_label in self.owners
        ]
        if names and not self.allow_fake:
            raise Refused(
                f"Recording {', '.join(names)} without running it would let the ledger and the schema differ.",
                mend="Run it for real; if the schema already holds what it makes, add --allow-fake.",
            )

    def migration_plan(self, targets: Any, clean_start: bool = False) -> list[tuple[Migration, bool]]:
        """Plan ``targets`` in hosted order, other apps first; dependencies still come before dependents."""
        return super().migration_plan(sorted(targets, key=self._place), clean_start=clean_start)

    def _place(self, target: Any) -> tuple[int, str, str]:
        owner = self.owners.get(target[0])
        return (owner.position if owner else -1, target[0], target[1] or "")

    def apply_migration(
        self, state: ProjectState, migration: Migration, fake: bool = False, fake_initial: bool = False
    ) -> ProjectState:
        """Apply one migration: DDL, deferred SQL, Django's row and the ledger row in one commit."""
        self.current = migration
        if fake_initial and not fake:
            # Decided here, since Django would not tell whether it faked.
            fake, state = self.detect_soft_applied(state, migration)
            if fake:
                self._refuse_fakes([migration])
        if migration.app_label not in self.owners:
            state = super().apply_migration(state, migration, fake=fake)
        else:
            self.tell("apply_start", migration, fake)
            with self.recorder.running(migration, "faked" if fake else "applied"):
                state = self._commit(state, migration, fake)
            self.tell("apply_success", migration, fake)
            self.done.append(self.owners[migration.app_label].ledger_name(migration.name))
        self._passed.add(migration)
        self.current = None
        return state

    def unapply_migration(self, state: ProjectState, migration: Migration, fake: bool = False) -> ProjectState:
        """Unapply one migration, in one commit with the ledger row that says so."""
        self.current = migration
        if migration.app_label not in self.owners:
            return super().unapply_migration(state, migration, fake=fake)
        self.tell("unapply_start", migration, fake)
        with (
            self.recorder.running(migration, self.unapplied_as),
            self._quietly(),
            self._dropping_no_others(),
            self._transaction(migration),
        ):
            state = super().unapply_migration(state, migration, fake=fake)
        self.tell("unapply_success", migration, fake)
        return state

    @contextmanager
    def _dropping_no_others(self) -> Iterator[None]:
        # Django drops with CASCADE, which would take the host's views and other modules' references along unsaid.
        if self.unapplied_as != "removed":
            yield
            return
        connection: Any = self.connection
        editor = connection.SchemaEditorClass
        connection.SchemaEditorClass = type(editor.__name__, (editor,), {"sql_delete_table": tables.DROP_ALONE})
        try:
            yield
        finally:
            connection.SchemaEditorClass = editor

    def _commit(self, state: ProjectState, migration: Migration, fake: bool) -> ProjectState:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._quietly(), self._transaction(migration):
                    joined = migration.atomic and not fake
                    if joined:
                        with self._joined_editor() as editor:
                            state = migration.apply(state, editor)
                    # What is left for Django to do after that is to record it.
                    state = super().apply_migration(state, migration, fake=fake or joined)
                    if migration.replaces:
                        # Django 5.2 records a squash itself only after the whole run; a crash must not come between.
                        self.check_replacements()
                    return state
            except OperationalError as error:
                if not isinstance(error.__cause__, postgres.LockNotAvailable) or not migration.atomic:
                    raise
                if attempt == ATTEMPTS:
                    raise MigrationFailed(
                        f"{migration.app_label}.{migration.name} did not get its table locks in {ATTEMPTS} tries "
                        f"of {self.lock_timeout_ms} ms each: {str(error).strip()}",
                        mend="Run it when long transactions on these tables have ended, or raise --lock-timeout.",
                    ) from error
                self.tell("lock_retry", migration, attempt)
                # Full jitter, so that whatever holds the lock gets a chance to finish.
                time.sleep(random.uniform(0.05, min(MAX_PAUSE_S, 0.25 * 2**attempt)))  # noqa: S311
                state = self._state_before(migration)
        raise AssertionError("unreachable")

    @contextmanager
    def _transaction(self, migration: Migration) -> Iterator[None]:
        if not migration.atomic:
            self._refuse_another_backend(migration_lock.backend(self.connection))
            self._clear_leftovers(migration)
            self._mark_started(migration)
            yield
            return
        with transaction.atomic(using=self.connection.alias, durable=True):
            self._refuse_another_backend(migration_lock.bound_waits(self.connection, self.lock_timeout_ms))
            yield

    @contextmanager
    def _joined_editor(self) -> Iterator[BaseDatabaseSchemaEditor]:
        # Its own savepoint would cost two round trips and protect nothing that our transaction does not.
        with self.connection.schema_editor(atomic=False) as editor:
            editor.atomic_migration = True
            try:
                yield editor
            finally:
                editor.atomic_migration = False

    def _clear_leftovers(self, migration: Migration) -> None:
        # A concurrent build that was interrupted leaves an index, mostly an invalid one, in the way of the next try.
        name = self.owners[migration.app_label].ledger_name(migration.name)
        standing = ledger_rows.standings(self.connection).get(name)
        if standing is None or standing.action != "started":
            return
        for operation in migration.operations:
            if isinstance(operation, AddIndexConcurrently):
                indexes.drop_concurrently(self.connection, operation.index.name)

    def _mark_started(self, migration: Migration) -> None:
        # Its own commit: an interrupted migration that has no transaction must be seen.
        with transaction.atomic(using=self.connection.alias, durable=True):
            self.recorder.append(migration.app_label, migration.name, "started")

    def _refuse_another_backend(self, backend: int) -> None:
        if self.backend is not None and backend != self.backend:
            raise LockLost(
                f"The migration lock was taken by PostgreSQL process {self.backend}, but this connection is now "
                f"served by process {backend}, so the lock no longer protects this run.",
                mend="Migrate over a direct connection: point COMPUTE['MIGRATION_DATABASE'] at an alias that does "
                "not go through a transaction pooler.",
            )

    def _state_before(self, migration: Migration) -> ProjectState:
        # The failed try changed its state in place, so it is built again from what is in the schema.
        applied = {
            self.loader.graph.nodes[key] for key in self.loader.applied_migrations if key in self.loader.graph.nodes
        } | self._passed
        state = ProjectState(real_apps=self.loader.unmigrated_apps)
        for planned, _ in self.migration_plan(self.loader.graph.leaf_nodes(), clean_start=True):
            if planned == migration:
                break
            if planned in applied:
                planned.mutate_state(state, preserve=False)
        return state

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        # Progress is told once for each migration, after its commit, however often it was tried.
        callback, self.progress_callback = self.progress_callback, None
        try:
            yield
        finally:
            self.progress_callback = callback

    def tell(self, action: str, migration: Migration | None, detail: Any = False) -> None:
        """Tell the progress callback, whose protocol is Django's with the actions ``plan`` and ``lock_retry`` added."""
        callback: Progress | None = self.progress_callback
        if callback:
            callback(action, migration, detail)
