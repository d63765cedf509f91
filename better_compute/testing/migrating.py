"""A module's own migrations under test: back to one of them, rows as they were then, and forward again."""

from __future__ import annotations

from typing import Any

from better_compute import conf, ledger


def migrate_module(module: str, migration: str | None, using: str | None = None) -> Any:
    """Bring ``module`` to ``migration`` and return the models as they were there.

    It goes the way of ``manage.py migrate``: under the lock, each migration in one commit with its ledger row, and
    what depends on a migration that goes back goes back first. The test must really commit.

    Parameters
    ----------
    module
        Its name in the ledger, e.g. ``acme``.
    migration
        The name of the file, e.g. ``0001_widgets``; None for before the first.
    using
        Alias to migrate; ``COMPUTE["MIGRATION_DATABASE"]`` by default.

    Returns
    -------
    StateApps
        ``get_model("plg_acme", "Widget")`` of it is the model with the columns that it had then.

    Raises
    ------
    LedgerError
        Refused when there is no such module or migration, MigrationFailed when one fails or cannot be reversed.
    """
    return ledger.migrate_to(module, migration, using or conf.current().owner_database)
