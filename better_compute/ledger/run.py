"""One migration run, from the lock to the grants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

from django.apps import apps
from django.core.management.sql import emit_post_migrate_signal, emit_pre_migrate_signal
from django.db import DatabaseError
from django.db.migrations import Migration
from django.db.migrations.state import ModelState, ProjectState
from django.utils.module_loading import module_has_submodule

from better_compute import conf
from better_compute.contract.errors import ComputeError
from better_compute.ledger import engine, owners
from better_compute.ledger.errors import LedgerError, MigrationFailed, Refused
from better_compute.ledger.executor import LOCK_TIMEOUT_MS, LedgerExecutor, Progress
from better_compute.ledger.owners import Owner
from better_compute.ledger.turn import LOCK_WAIT_S, Say, turn

Node = tuple[str, str]


def pending(using: str | None = None, *, module: str | None = None) -> list[str]:
    """Ledger names that are not applied yet, in the order in which they would be. Writes nothing.

    Raises
    ------
    Refused
        When the modules, the graph or the database cannot be migrated at all.
    """
    connection = engine.connect(using or conf.current().owner_database)
    hosted = hosted_modules()
    executor = LedgerExecutor(connection, owners=hosted)
    return [
        hosted[migration.app_label].ledger_name(migration.name)
        for migration, _ in executor.migration_plan(targets(executor, hosted, module))
        if migration.app_label in hosted
    ]


def migrate(
    using: str | None = None,
    *,
    module: str | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
    lock_wait: float = LOCK_WAIT_S,
    lock_timeout: float = LOCK_TIMEOUT_MS / 1000,
    verbosity: int = 0,
) -> list[str]:
    """Bring the database up to date and return the ledger names that this run applied.

    Parameters
    ----------
    using
        Alias to migrate; ``COMPUTE["MIGRATION_DATABASE"]`` by default.
    module
        Migrate only this module and what it depends on.
    progress
        Called as Django's own executor calls it: action, migration, detail.
    lock_wait, lock_timeout
        Seconds to wait for other migrators, and in each try for table locks.

    Raises
    ------
    LedgerError
        Refused, Drifted, LockNotAcquired or MigrationFailed; each has its exit code.
    """
    connection = engine.connect(using or conf.current().owner_database)
    hosted = hosted_modules()
    with turn(connection, wait=lock_wait, say=say) as backend:
        # Built under the lock, so that what another migrator has just applied is not planned again.
        executor = LedgerExecutor(
            connection, progress, owners=hosted, backend=backend, lock_timeout_ms=round(lock_timeout * 1000)
        )
        goals = targets(executor, hosted, module)
        plan = executor.migration_plan(goals)
        before = executor._create_project_state(with_applied_migrations=True)
        _load_signal_handlers()
        emit_pre_migrate_signal(verbosity, False, connection.alias, apps=before.apps, plan=plan)
        with reported(executor):
            after = executor.migrate(goals, plan=plan, state=before.clone())
        _render(after)
        emit_post_migrate_signal(verbosity, False, connection.alias, apps=after.apps, plan=plan)
    return executor.done


def hosted_modules() -> dict[str, Owner]:
    """Every hosted module by label; a refused registry is a refused run."""
    try:
        return owners.hosted()
    except LedgerError:
        raise
    except ComputeError as error:
        raise Refused(error.message, mend=error.mend) from error


def targets(executor: LedgerExecutor, hosted: Mapping[str, Owner], module: str | None) -> list[Node]:
    """The leaves to migrate to: all of them, or those of ``module``."""
    leaves: list[Node] = list(executor.loader.graph.leaf_nodes())
    if module is None:
        return leaves
    labels = {owner.label for owner in hosted.values() if owner.name == module}
    if not labels:
        names = ", ".join(owner.name for owner in hosted.values())
        raise Refused(f"Module {module!r} is not hosted here; hosted are {names}.", mend="Name one of these.")
    return [leaf for leaf in leaves if leaf[0] in labels]


@contextmanager
def reported(executor: LedgerExecutor) -> Iterator[None]:
    """Turn a database error of a migration into one that names the migration."""
    try:
        yield
    except DatabaseError as error:
        current = executor.current
        if current is None:
            raise
        raise MigrationFailed(
            f"{_title(current, executor.owners)} failed: {str(error).strip()}",
            mend="Nothing of it is left in the database; mend the migration or the data and run again."
            if current.atomic
            else "It runs without a transaction, so part of it may stand; see what doctor says.",
        ) from error


def _title(migration: Migration, hosted: Mapping[str, Owner]) -> str:
    owner = hosted.get(migration.app_label)
    return owner.ledger_name(migration.name) if owner else f"{migration.app_label}.{migration.name}"


def _load_signal_handlers() -> None:
    # As Django's own command does: receivers of the two signals stand in apps' `management` packages.
    for config in apps.get_app_configs():
        if config.module is not None and module_has_submodule(config.module, "management"):
            import_module(".management", config.name)


def _render(state: ProjectState) -> None:
    """Give the receivers of ``post_migrate`` every model, real ones included, with its relations."""
    state.clear_delayed_apps_cache()
    rendered = state.apps
    with rendered.bulk_update():
        keys = [(model.app_label, model.name_lower) for model in rendered.real_models]
        for key in keys:
            rendered.unregister_model(*key)
    rendered.render_multiple([ModelState.from_model(apps.get_model(*key)) for key in keys])
