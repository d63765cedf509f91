"""What only the whole graph of migrations shows, read from the files before anything runs.

Names, owners, numbers and leaves are the registry's checks; these are about dependencies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

from better_compute.ledger.owners import Owner

Node = tuple[str, str]

#: The label that every other module's first migration must come after.
CORE = "compute"


def files() -> MigrationLoader:
    """A loader that has read the files but built no graph, for files of which none can be built."""
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    return loader


def problems(hosted: Mapping[str, Owner], loader: MigrationLoader) -> list[str]:
    """Everything wrong with the dependencies of hosted modules' migrations, each with its mend."""
    shipped = {key: migration for key, migration in loader.disk_migrations.items() if key[0] in hosted}
    found: list[str] = []
    for label, owner in hosted.items():
        own = sorted(name for app, name in shipped if app == label)
        for position, name in enumerate(own):
            migration = shipped[label, name]
            found += _unknown(migration, owner, loader)
            found += _backwards(migration, owner)
            if position and not migration.replaces:
                found += _unchained(migration, owner, shipped[label, own[position - 1]])
        if own and label != CORE and CORE in hosted:
            found += _rootless(shipped[label, own[0]], owner)
    return found


def _unknown(migration: Migration, owner: Owner, loader: MigrationLoader) -> Iterator[str]:
    replaced = {name for each in loader.disk_migrations.values() for name in each.replaces}
    for app, name in migration.dependencies:
        title = f"{owner.ledger_name(migration.name)} depends on {app}.{name}"
        if app not in loader.migrated_apps and app not in loader.unmigrated_apps:
            yield f"{title}, but no installed app has the label {app!r}. Install it, or drop the dependency."
        elif name in {"__first__", "__latest__"}:
            continue
        elif (app, name) not in loader.disk_migrations and (app, name) not in replaced:
            latest = max((key[1] for key in loader.disk_migrations if key[0] == app), default="none")
            yield (
                f"{title}, which the installed {app!r} does not have (its latest is {latest}). "
                f"Upgrade {app!r}, or use a release of {owner.name!r} made for this one."
            )


def _backwards(migration: Migration, owner: Owner) -> Iterator[str]:
    for app, name in migration.dependencies:
        if app == owner.label and name[:4].isdigit() and name[:4] >= migration.name[:4]:
            yield (
                f"{owner.ledger_name(migration.name)} depends on {owner.ledger_name(name)}, whose number is not lower. "
                "Give the dependent the higher number: migrations of an owner run in the order of their numbers."
            )


def _unchained(migration: Migration, owner: Owner, before: Migration) -> Iterator[str]:
    links = {(owner.label, before.name), *before.replaces}
    if not links & {(app, name) for app, name in migration.dependencies}:
        yield (
            f"{owner.ledger_name(migration.name)} does not depend on {owner.ledger_name(before.name)}, the number "
            f"before it. Add ({owner.label!r}, {before.name!r}) to its dependencies, so that they run in this order."
        )


def _rootless(migration: Migration, owner: Owner) -> Iterator[str]:
    if not any(app == CORE for app, _ in migration.dependencies):
        yield (
            f"{owner.ledger_name(migration.name)} does not depend on the core, so it could run before the ledger "
            f"exists. Subclass ComputeMigration, or add ({CORE!r}, '__first__') to its dependencies."
        )
