"""Reads a module's migrations from the files of their package, without a database."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec

from django.apps import AppConfig
from django.db.migrations.loader import MigrationLoader


def package_of(config: AppConfig) -> str | None:
    """Import path of the app's migrations package, None when it is disabled or absent.

    ``MIGRATION_MODULES`` is honoured.
    """
    package, _ = MigrationLoader.migrations_module(config.label)
    if package is None or find_spec(package) is None:
        return None
    return package


def disabled(config: AppConfig) -> bool:
    """Whether ``MIGRATION_MODULES`` turns the app's migrations off."""
    package, explicit = MigrationLoader.migrations_module(config.label)
    return package is None and explicit


def names(package: str) -> list[str]:
    """Names of the package's migrations in order, by the same rule as Django's loader."""
    paths = getattr(import_module(package), "__path__", None) or ()
    return sorted(name for _, name, is_package in pkgutil.iter_modules(paths) if not is_package and name[0] not in "_~")
