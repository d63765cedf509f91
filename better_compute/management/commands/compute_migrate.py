"""``manage.py compute_migrate``: the strict front door of the schema."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError, no_translations

from better_compute import ledger


class Command(BaseCommand):
    """Apply what is pending, in hosted order, each migration with its ledger row in one commit."""

    help = "Bring the schema up to date: one lock, hosted order, one commit for each migration."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--database", help="alias to migrate (default: COMPUTE['MIGRATION_DATABASE'])")
        parser.add_argument("--module", help="only this module and what it depends on")

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Run, and end with the exit code that automation branches on."""
        try:
            for name in ledger.migrate(options["database"], module=options["module"], say=self.stderr.write):
                self.stdout.write(name)
        except ledger.LedgerError as error:
            raise CommandError(str(error), returncode=error.exit_code) from error
