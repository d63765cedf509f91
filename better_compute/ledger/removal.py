"""Taking a module's schema out of a database, while the module is still installed to say what that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import router, transaction
from django.db.migrations import Migration

from better_compute import conf, registry
from better_compute.contract.module import ModuleSpec
from better_compute.contract.names import codename
from better_compute.ledger import drift, engine, run
from better_compute.ledger.errors import Refused
from better_compute.ledger.executor import LedgerExecutor
from better_compute.ledger.graph import CORE
from better_compute.ledger.owners import Owner
from better_compute.ledger.turn import LOCK_WAIT_S, Say, turn
from better_compute.store import ledger_rows, tables, traces


@dataclass(frozen=True, slots=True)
class Removal:
    """What removing a module does."""

    owner: Owner
    #: Ledger names that are applied, latest first.
    migrations: tuple[str, ...]
    #: Tables of its models, from the state that its migrations make.
    tables: tuple[str, ...]
    #: Ledger names that cannot be reversed; then the tables are dropped instead.
    irreversible: tuple[str, ...]
    #: Rows in the core's tables that its reconcilers left.
    traces: traces.Traces
    #: Codenames of the permissions of its actions, which go with whoever was granted them.
    permissions: tuple[str, ...]


def plan(name: str, using: str | None = None) -> Removal:
    """What :func:`remove` would do; changes nothing."""
    return _planned(run.reader(using), name)


def remove(name: str, using: str | None = None, *, say: Say | None = None, lock_wait: float = LOCK_WAIT_S) -> Removal:
    """Take ``name``'s tables, Django rows, work, leases, content types and permissions out of the database.

    The ledger says ``removed``; events and audit records stay, since they are history.

    Migrations are unapplied latest first, each in its own commit. Where one cannot be reversed, the tables of
    the models are dropped in one commit instead; what raw SQL made besides must go by hand.

    Raises
    ------
    LedgerError
        Refused when the module is the core, is not hosted, or another one depends on it.
    """
    connection = engine.connect(using or conf.current().owner_database)
    hosted = run.hosted_modules()
    with turn(connection, wait=lock_wait, say=say) as backend:
        executor = run.executor_for(connection, hosted, backend=backend, unapplied_as="removed")
        drift.refuse(executor)
        removal = _planned(executor, name)
        with run.naming_failures(executor):
            if removal.irreversible:
                _drop(executor, removal)
            else:
                executor.migrate([(removal.owner.label, None)])
        with transaction.atomic(using=connection.alias, durable=True):
            traces.forget(connection, _reconcilers(name))
            _forget_models(removal.owner.label, connection.alias)
            _forget_permissions(name, connection.alias)
    return removal


def _spec(name: str) -> ModuleSpec:
    return next(spec for spec in registry.current().modules if spec.name == name)


def _reconcilers(name: str) -> list[str]:
    return [reconciler.name for reconciler in _spec(name).reconcilers]


def _permissions(name: str, using: str) -> Any:
    """The permissions of the actions that no other module's catalog lists, as a query; None where there are none."""
    if not apps.is_installed("django.contrib.auth"):
        return None
    model: Any = apps.get_model("auth", "Permission")
    if not router.allow_migrate_model(using, model):
        return None
    others = {action for spec in registry.current().modules if spec.name != name for action in spec.catalog.actions}
    own = {codename(action) for action in set(_spec(name).catalog.actions) - others}
    rows = model.objects.using(using)
    return rows.filter(content_type__app_label=CORE, content_type__model="action", codename__in=own)


def _forget_permissions(name: str, using: str) -> None:
    rows = _permissions(name, using)
    if rows is not None:
        rows.delete()


def _planned(executor: LedgerExecutor, name: str) -> Removal:
    owner = next((owner for owner in executor.owners.values() if owner.name == name), None)
    if owner is None:
        names = ", ".join(each.name for each in executor.owners.values())
        raise Refused(
            f"Module {name!r} is not hosted here; hosted are {names}.",
            mend="A module must be installed to be removed, since only its migrations know its tables.",
        )
    if owner.label == CORE:
        raise Refused(
            "The core cannot be removed: every module stands on it.",
            mend="To take everything out, run `manage.py migrate compute zero`.",
        )
    applied = _applied(executor, owner)
    _refuse_dependents(executor, owner)
    served = ledger_rows.exists(executor.connection)
    permissions = _permissions(name, executor.connection.alias) if served else None
    return Removal(
        owner=owner,
        migrations=tuple(owner.ledger_name(each.name) for each in applied),
        tables=tuple(tables.existing(executor.connection, _model_tables(executor, owner))),
        irreversible=tuple(
            owner.ledger_name(each.name) for each in applied if not all(op.reversible for op in each.operations)
        ),
        traces=traces.count(executor.connection, _reconcilers(name)) if served else traces.Traces(0, 0, 0),
        permissions=() if permissions is None else tuple(sorted(permissions.values_list("codename", flat=True))),
    )


def _applied(executor: LedgerExecutor, owner: Owner) -> list[Migration]:
    recorded = executor.loader.applied_migrations
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes(owner.label), clean_start=True)
    return [
        migration
        for migration, _ in reversed(plan)
        if migration.app_label == owner.label and (owner.label, migration.name) in recorded
    ]


def _refuse_dependents(executor: LedgerExecutor, owner: Owner) -> None:
    needing = {spec.name for spec in registry.current().modules if owner.name in spec.requires}
    graph = executor.loader.graph
    for key in graph.nodes:
        if key[0] == owner.label:
            for child in graph.node_map[key].children:
                if child.key[0] != owner.label and child.key in executor.loader.applied_migrations:
                    other = executor.owners.get(child.key[0])
                    needing.add(other.name if other else child.key[0])
    if needing:
        raise Refused(
            f"Module {owner.name!r} is needed by {', '.join(sorted(needing))}.",
            mend="Remove these first.",
        )


def _model_tables(executor: LedgerExecutor, owner: Owner) -> list[str]:
    state = executor.loader.project_state(executor.loader.graph.leaf_nodes(owner.label))
    models = state.apps.get_models(include_auto_created=True)
    return sorted(
        model._meta.db_table for model in models if model._meta.app_label == owner.label and model._meta.managed
    )


def _drop(executor: LedgerExecutor, removal: Removal) -> None:
    with transaction.atomic(using=executor.connection.alias, durable=True):
        tables.drop(executor.connection, removal.tables)
        for migration in _applied(executor, removal.owner):
            with executor.recorder.running(migration, "removed"):
                for label, name in [*migration.replaces, (migration.app_label, migration.name)]:
                    executor.recorder.record_unapplied(label, name)


def _forget_models(label: str, using: str) -> None:
    """Delete content types, whose permissions go with them."""
    if not apps.is_installed("django.contrib.contenttypes"):
        return
    model: Any = apps.get_model("contenttypes", "ContentType")
    if router.allow_migrate_model(using, model):
        model.objects.using(using).filter(app_label=label).delete()
        model.objects.clear_cache()
