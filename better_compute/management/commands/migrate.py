"""Plain ``manage.py migrate``, through the same lock, order and ledger as ``compute_migrate``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate as django_migrate
from django.db import DEFAULT_DB_ALIAS

from better_compute import conf, ledger
from better_compute.contract.errors import ComputeError
from better_compute.ledger.turn import LOCK_WAIT_S
from better_compute.management import waits
from better_compute.management.refusals import told


class Command(django_migrate.Command):
    """Django's command inside a migrator's turn; ``COMPUTE["WRAP_MIGRATE"] = False`` leaves it as Django's."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what the turn needs to Django's own options."""
        super().add_arguments(parser)
        parser.add_argument(
            "--lock-wait", type=waits.lock_wait, default=LOCK_WAIT_S, help="seconds to wait for other migrators"
        )
        parser.add_argument(
            "--allow-fake", action="store_true", help="let --fake and --fake-initial record compute migrations"
        )
        # What is wrong with the settings is told when the command runs, in one line.
        with suppress(ComputeError):
            settings = conf.current()
            if settings.database == DEFAULT_DB_ALIAS:
                # The alias that serves cannot alter tables; the one that migrates is the same database.
                parser.set_defaults(database=settings.owner_database)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Django's command."""
        lock_wait, allow_fake = options.pop("lock_wait"), options.pop("allow_fake")
        try:
            with told():
                conf.current()
            with ledger.wrapped(
                options["database"],
                dry=options["plan"] or options["check_unapplied"],
                allow_fake=allow_fake,
                say=self.stderr.write,
                lock_wait=lock_wait,
            ):
                super().handle(*args, **options)
        except ledger.LedgerError as error:
            raise CommandError(str(error), returncode=error.exit_code) from error
