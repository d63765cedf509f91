"""One migration run, from the lock to the grants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from django.apps import apps
from django.core.management.sql import emit_post_migrate_signal, emit_pre_migrate_signal
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.exceptions import (
    BadMigrationError,
    CircularDependencyError,
    InconsistentMigrationHistory,
    IrreversibleError,
    NodeNotFoundError,
)
from django.db.migrations.state import ModelState, ProjectState
from django.utils.module_loading import module_has_submodule

from better_compute import conf
from better_compute.contract.errors import ComputeError
from better_compute.ledger import drift, engine, graph, owners, roles
from better_compute.ledger.errors import LedgerError, MigrationFailed, Refused
from better_compute.ledger.executor import LOCK_TIMEOUT_MS, LedgerExecutor, Progress
from better_compute.ledger.owners import Owner
from better_compute.ledger.turn import LOCK_WAIT_S, Say, turn
from better_compute.store.failures import connection_lost, dependents, describe_failure

Node = tuple[str, str]


def pending(using: str | None = None, *, module: str | None = None) -> list[str]:
    """Ledger names that are not applied yet, in the order in which they would be. Writes nothing.

    Raises
    ------
    Refused
        When the modules, the graph or the database cannot be migrated at all.
    """
    executor = reader(using)
    return [ledger_name for ledger_name, _ in planned(executor, module) if ledger_name]


def planned(executor: LedgerExecutor, module: str | None = None) -> list[tuple[str, Migration]]:
    """What would run, in order: the ledger name (empty for other apps' migrations) and the migration."""
    return [
        (_ledger_name(migration, executor.owners), migration)
        for migration, _ in executor.migration_plan(targets(executor, module))
    ]


def reader(using: str | None = None) -> LedgerExecutor:
    """An executor to ask for plans and drift, made without the lock."""
    connection = engine.connect(using or conf.current().owner_database)
    return executor_for(connection, hosted_modules())


def migrate(
    using: str | None = None,
    *,
    module: str | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
    lock_wait: float = LOCK_WAIT_S,
    lock_timeout: float = LOCK_TIMEOUT_MS / 1000,
    adopt: bool = False,
    allow_fake: bool = False,
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
        Called as Django's own executor calls it: action, migration, detail; first ``plan`` with its length.
    say
        Gets lines about waiting for another migrator, and about what was adopted.
    lock_wait, lock_timeout
        Seconds to wait for other migrators, and in each try for table locks.
    adopt
        Write into the ledger what was migrated around it.
    allow_fake
        Record an initial migration whose tables exist already instead of running it.

    Raises
    ------
    LedgerError
        Refused, Drifted, LockNotAcquired or MigrationFailed; each has its exit code.
    """
    connection = engine.connect(using or conf.current().owner_database)
    hosted = hosted_modules()
    roles.refuse(connection)
    with turn(connection, wait=lock_wait, say=say) as backend:
        # Built under the lock, so that what another migrator has just applied is not planned again.
        executor = executor_for(
            connection,
            hosted,
            progress,
            backend=backend,
            lock_timeout_ms=round(lock_timeout * 1000),
            allow_fake=allow_fake,
        )
        for name in drift.adopt(executor) if adopt else ():
            if say:
                say(f"Adopted {name}.")
        drift.refuse(executor)
        with refusing_graph():
            executor.loader.check_consistent_history(connection)
        _run(executor, module, fake_initial=allow_fake, verbosity=verbosity)
        roles.grant(connection)
    return executor.done


def _run(executor: LedgerExecutor, module: str | None, *, fake_initial: bool, verbosity: int) -> None:
    alias = executor.connection.alias
    goals = targets(executor, module)
    plan = executor.migration_plan(goals)
    executor.tell("plan", None, len(plan))
    before: ProjectState = executor._create_project_state(with_applied_migrations=True)  # type: ignore[attr-defined]
    _load_signal_handlers()
    emit_pre_migrate_signal(verbosity, False, alias, apps=before.apps, plan=plan)
    with naming_failures(executor):
        after = executor.migrate(goals, plan=plan, state=before.clone(), fake_initial=fake_initial)
    _render(after)
    emit_post_migrate_signal(verbosity, False, alias, apps=after.apps, plan=plan)


def migrate_to(module: str, migration: str | None, using: str, *, lock_wait: float = LOCK_WAIT_S) -> Any:
    """Bring ``module`` to ``migration``, None for before its first, and return the models of that state."""
    connection = engine.connect(using)
    hosted = hosted_modules()
    with turn(connection, wait=lock_wait) as backend:
        executor = executor_for(connection, hosted, backend=backend)
        drift.refuse(executor)
        ((label, _), *_rest) = targets(executor, module)
        if migration is not None and (label, migration) not in executor.loader.graph.nodes:
            names = ", ".join(sorted(name for app, name in executor.loader.graph.nodes if app == label))
            raise Refused(f"{module} has no migration {migration!r}; it has {names}.", mend="Name one of these.")
        with naming_failures(executor):
            state = executor.migrate([(label, migration)])
    state.clear_delayed_apps_cache()
    return state.apps


def rehash(name: str, reason: str, using: str | None = None, *, lock_wait: float = LOCK_WAIT_S) -> None:
    """Accept the shipped source of the applied migration ``name`` as it is now; see :func:`drift.rehash`."""
    connection = engine.connect(using or conf.current().owner_database)
    hosted = hosted_modules()
    with turn(connection, wait=lock_wait) as backend:
        drift.rehash(executor_for(connection, hosted, backend=backend), name, reason)


def executor_for(
    connection: BaseDatabaseWrapper, hosted: Mapping[str, Owner], progress: Progress | None = None, **options: Any
) -> LedgerExecutor:
    """An executor over the files and the database as they are now, when no rule of the graph is broken.

    Raises
    ------
    Refused
        Listing every problem of every module.
    """
    try:
        with refusing_graph():
            executor = LedgerExecutor(connection, progress, owners=hosted, **options)
    except Refused:
        # Django names the first missing node only, and not whose fault it is.
        found = graph.problems(hosted, graph.files())
        if found:
            raise Refused.all_of(found) from None
        raise
    found = graph.problems(hosted, executor.loader)
    if found:
        raise Refused.all_of(found)
    return executor


def hosted_modules() -> dict[str, Owner]:
    """Every hosted module by label.

    Raises
    ------
    Refused
        Listing every registration rule that an installed module breaks.
    """
    try:
        return owners.hosted()
    except LedgerError:
        raise
    except ComputeError as error:
        raise Refused(error.message, mend=error.mend) from error


def targets(executor: LedgerExecutor, module: str | None) -> list[Node]:
    """The leaves to migrate to: all of them, or those of ``module``."""
    leaves: list[Node] = list(executor.loader.graph.leaf_nodes())
    if module is None:
        return leaves
    labels = {owner.label for owner in executor.owners.values() if owner.name == module}
    if not labels:
        names = ", ".join(owner.name for owner in executor.owners.values())
        raise Refused(f"Module {module!r} is not hosted here; hosted are {names}.", mend="Name one of these.")
    return [leaf for leaf in leaves if leaf[0] in labels]


@contextmanager
def refusing_graph() -> Iterator[None]:
    """Turn what Django says about the graph of other apps' migrations into a refusal."""
    try:
        yield
    except (
        BadMigrationError,
        CircularDependencyError,
        InconsistentMigrationHistory,
        NodeNotFoundError,
        ValueError,
    ) as error:
        raise Refused(
            f"The graph of migrations is broken: {error}",
            mend="`manage.py showmigrations` shows what is installed and applied.",
        ) from error


@contextmanager
def naming_failures(executor: LedgerExecutor) -> Iterator[None]:
    """Turn whatever a migration raised into an error that names the migration; the cause stays attached."""
    try:
        yield
    except LedgerError:
        raise
    except Exception as error:
        current = executor.current
        if current is None:
            raise
        title = _ledger_name(current, executor.owners) or f"{current.app_label}.{current.name}"
        if isinstance(error, IrreversibleError):
            mend = "It cannot be reversed; restore a backup, or write a migration that undoes it."
        elif (others := dependents(error)) is not None:
            mend = f"Nothing of it is gone. Drop what stands on it first: {others}."
        elif current.atomic and connection_lost(error):
            mend = "It stands whole or not at all, and the ledger knows which: run it again when the server answers."
        elif current.atomic:
            mend = "Nothing of it is left in the database; mend the migration or the data and run again."
        else:
            mend = "It runs without a transaction, so part of it may stand; `manage.py doctor` says what."
        said = describe_failure(error)
        raise MigrationFailed(f"{title} failed: {said}{'' if said.endswith('.') else '.'}", mend=mend) from error


def _ledger_name(migration: Migration, hosted: Mapping[str, Owner]) -> str:
    owner = hosted.get(migration.app_label)
    return owner.ledger_name(migration.name) if owner else ""


def _load_signal_handlers() -> None:
    # As Django's own command does: receivers of the two signals stand in apps' `management` packages.
    for config in apps.get_app_configs():
        if config.module is not None and module_has_submodule(config.module, "management"):
            import_module(".management", config.name)


def _render(state: ProjectState) -> None:
    """Give the receivers of ``post_migrate`` every model, real ones included, with its relations."""
    state.clear_delayed_apps_cache()
    rendered: Any = state.apps
    with rendered.bulk_update():
        keys = [(model.app_label, model.name_lower) for model in rendered.real_models]
        for key in keys:
            rendered.unregister_model(*key)
    rendered.render_multiple([ModelState.from_model(apps.get_model(*key)) for key in keys])
