"""Reads a module's migrations from the files of their package, without a database."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

from django.apps import AppConfig
from django.core.checks import CheckMessage
from django.db.migrations.loader import MigrationLoader

from better_compute.contract.migrations import ComputeMigration
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, import_error, shown


def read(spec: ModuleSpec, config: AppConfig) -> tuple[list[str], list[CheckMessage]]:
    """Names of the migrations that ``config`` ships, in order, and what is wrong with them.

    They must be enabled, importable, of our class, atomic, and of one line. ``MIGRATION_MODULES`` is honoured.
    """
    package, explicit = MigrationLoader.migrations_module(config.label)
    if package is None:
        return [], list(_disabled(spec, config, explicit=explicit))
    # Django takes a package that the settings name for granted, so its absence is a broken import.
    if not explicit and find_spec(package) is None:
        return [], []
    try:
        found = names(package)
    except Exception as failure:
        return [], [import_error(spec, package, failure)]
    return found, list(_check(spec, package, found))


def _disabled(spec: ModuleSpec, config: AppConfig, *, explicit: bool) -> Iterator[CheckMessage]:
    if explicit and find_spec(f"{config.name}.migrations") is not None:
        yield error(
            ids.MIGRATIONS_DISABLED,
            spec,
            f"MIGRATION_MODULES[{config.label!r}] is None, so its migrations are disabled.",
            "Remove the entry, and run tests without --nomigrations: tables and triggers come from migrations alone.",
        )


def names(package: str) -> list[str]:
    """Names of the package's migrations in order, by the same rule as Django's loader."""
    paths = getattr(import_module(package), "__path__", None) or ()
    return sorted(name for _, name, is_package in pkgutil.iter_modules(paths) if not is_package and name[0] not in "_~")


def _check(spec: ModuleSpec, package: str, found: Sequence[str]) -> Iterator[CheckMessage]:
    sound: dict[str, type[ComputeMigration]] = {}
    broken = False
    for name in found:
        path = f"{package}.{name}"
        try:
            migration: object = getattr(import_module(path), "Migration", None)
        except Exception as failure:
            # Django's loader would end in a traceback, before any other module is judged.
            broken = True
            yield import_error(spec, path, failure)
            continue
        if isinstance(migration, type) and issubclass(migration, ComputeMigration):
            sound[name] = migration
            yield from _migration(spec, name, migration)
        else:
            yield error(
                ids.MIGRATION_CLASS,
                spec,
                f"migration {name!r} has Migration = {shown(migration)}, which is no subclass of ComputeMigration.",
                "Write `from better_compute import ComputeMigration` and `class Migration(ComputeMigration):`.",
            )
    # What follows what is not known while one cannot be read.
    if not broken:
        yield from _leaves(spec, sound)


def _migration(spec: ModuleSpec, name: str, migration: type[ComputeMigration]) -> Iterator[CheckMessage]:
    if migration.owner is not None and migration.owner != spec.name:
        yield error(
            ids.MIGRATION_OWNER,
            spec,
            f"migration {name!r} states owner = {shown(migration.owner)}.",
            f"Remove it or write {spec.name!r}: a module ships migrations of its own only.",
        )
    if migration.atomic is not False:
        return
    reason: object = migration.non_atomic_reason
    if not isinstance(reason, str) or not reason.strip():
        yield error(
            ids.MIGRATION_ATOMIC,
            spec,
            f"migration {name!r} has atomic = False without a reason.",
            "Remove it, or say in non_atomic_reason why it cannot run in a transaction.",
        )
    if len(migration.operations) != 1:
        yield error(
            ids.MIGRATION_ATOMIC,
            spec,
            f"migration {name!r} has atomic = False and {len(migration.operations)} operations.",
            "Let a non-atomic migration hold exactly one operation, so that an interrupted one can be told.",
        )


def _leaves(spec: ModuleSpec, migrations: Mapping[str, type[ComputeMigration]]) -> Iterator[CheckMessage]:
    followed = {
        dependency[1]
        for migration in migrations.values()
        for dependency in (*migration.dependencies, *migration.replaces)
        if dependency[0] == spec.label
    }
    leaves = [name for name in migrations if name not in followed]
    if len(leaves) > 1:
        yield error(
            ids.MIGRATION_LEAVES,
            spec,
            f"migrations {', '.join(repr(name) for name in leaves)} have no successor each; there may be one leaf.",
            f"Let {leaves[-1]!r} depend on the one before it.",
        )
