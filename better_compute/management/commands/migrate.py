"""Plain ``manage.py migrate``, through the same lock, order and ledger as ``compute_migrate``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate as django_migrate

from better_compute import ledger


class Command(django_migrate.Command):
    """Django's command with our executor in it; see ``better_compute.ledger.wrap``."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Django's command inside a migrator's turn."""
        try:
            with ledger.wrapped(
                options["database"],
                dry=options["plan"] or options["check_unapplied"],
                say=self.stderr.write,
            ):
                super().handle(*args, **options)
        except ledger.LedgerError as error:
            raise CommandError(str(error), returncode=error.exit_code) from error
