"""The host's settings: ``COMPUTE`` itself, and the database it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.connection import ConnectionDoesNotExist
from psycopg import IsolationLevel

from better_compute import conf
from better_compute.contract.errors import ComputeError
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import setting_error, shown


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Every key of ``COMPUTE`` is known and of its type, and the compute database is PostgreSQL."""
    if not django_settings.USE_TZ:
        yield setting_error(
            ids.USE_TZ,
            "USE_TZ in the settings is False, so times would be read without their zone and leases compared wrongly.",
            "Set USE_TZ = True; Django keeps showing times in TIME_ZONE.",
        )
    compute: object = getattr(django_settings, "COMPUTE", {})
    if not isinstance(compute, Mapping):
        yield setting_error(
            ids.SETTINGS, f"COMPUTE in the settings is {shown(compute)}, which is no dictionary.", "Write COMPUTE = {}."
        )
        return
    yield from _keys(compute, specs)
    try:
        settings = conf.current()
    except ComputeError as problem:
        yield setting_error(ids.SETTINGS, problem.message, problem.mend)
        return
    for key, alias in dict.fromkeys((("DATABASE", settings.database), ("MIGRATION_DATABASE", settings.owner_database))):
        if key == "DATABASE" or alias != settings.database:
            yield from _database(key, alias)


def _keys(compute: Mapping[Any, Any], specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    hosted = {spec.name for spec in specs}
    for key, value in compute.items():
        if key in conf.CORE_KEYS:
            continue
        if key in hosted:
            if not isinstance(value, Mapping):
                yield setting_error(
                    ids.SETTINGS,
                    f"COMPUTE[{key!r}] in the settings is {shown(value)}, which is no dictionary.",
                    f"Write the options of module {key!r} as a dictionary.",
                )
            continue
        near = get_close_matches(str(key), [*sorted(conf.CORE_KEYS), *sorted(hosted)], n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        what = (
            "is no key of the core" if isinstance(key, str) and key.isupper() else "is not the name of a hosted module"
        )
        yield setting_error(
            ids.SETTINGS,
            f"COMPUTE[{shown(key)}] in the settings {what}.",
            f"Remove or correct it.{meant}",
        )


def _database(key: str, alias: str) -> Iterator[CheckMessage]:
    try:
        connection = connections[alias]
    except ConnectionDoesNotExist:
        yield setting_error(
            ids.DATABASE,
            f"COMPUTE[{key!r}] names the alias {alias!r}, which DATABASES does not hold.",
            f"Add {alias!r} to DATABASES, or name one of {', '.join(sorted(connections.settings))}.",
        )
        return
    except ImproperlyConfigured as problem:
        yield setting_error(ids.DATABASE, f"DATABASES[{alias!r}] cannot be used: {problem}.", "Correct its ENGINE.")
        return
    if connection.vendor != "postgresql":
        yield setting_error(
            ids.DATABASE,
            f"DATABASES[{alias!r}], which COMPUTE[{key!r}] names, is {connection.vendor}, not PostgreSQL.",
            "Use django.db.backends.postgresql on PostgreSQL 15 or later.",
        )
        return
    options = connection.settings_dict.get("OPTIONS", {})
    if options.get("isolation_level") not in (None, IsolationLevel.READ_COMMITTED):
        yield setting_error(
            ids.ISOLATION,
            f"DATABASES[{alias!r}] sets isolation_level {options['isolation_level']!r}; fences and tenant states are "
            "read under READ COMMITTED, so that a lock is followed by what is true after it.",
            "Remove isolation_level from its OPTIONS.",
        )
    if options.get("server_side_binding"):
        yield Warning(
            f"DATABASES[{alias!r}] has server_side_binding on, which refuses statements of several commands.",
            hint="Remove server_side_binding from its OPTIONS; triggers and packaged SQL need it off.",
            obj="settings",
            id=ids.SERVER_SIDE_BINDING,
        )
