"""``manage.py compute_migrate``: the strict front door of the schema."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError, SystemCheckError, no_translations

from better_compute import conf, ledger
from better_compute.ledger.executor import LOCK_TIMEOUT_MS
from better_compute.ledger.turn import LOCK_WAIT_S
from better_compute.management import waits
from better_compute.management.migration_progress import MigrationProgress
from better_compute.management.refusals import told

#: ``--check`` found migrations that are not applied.
PENDING = 1


class Command(BaseCommand):
    """Apply what is pending, in hosted order, each migration with its ledger row in one commit.

    Exit codes: 0 done, 1 pending (``--check``), 2 a rule of the contract or the graph is broken, 3 another
    migrator held the lock, 4 a migration failed, 5 the ledger and the shipped migrations differ.
    """

    help = (
        "Bring the schema up to date: one lock, hosted order, one commit for each migration. Exit codes: 0 done, "
        "1 pending (--check), 2 contract, graph or database, 3 lock not acquired, 4 migration failed, 5 drift."
    )
    # Run below, so that a broken rule ends with 2 and not with Django's 1.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--database", help="alias to migrate (default: COMPUTE['MIGRATION_DATABASE'])")
        parser.add_argument("--module", help="only this module and what it depends on")
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--check", action="store_true", help="change nothing; exit 1 when anything is pending")
        mode.add_argument("--plan", action="store_true", help="change nothing; show what would run")
        mode.add_argument("--rehash", metavar="NAME", help="accept the changed source of an applied migration")
        parser.add_argument("--reason", default="", help="why the source changed, for --rehash")
        parser.add_argument("--format", choices=("table", "json"), default="table")
        parser.add_argument(
            "--lock-wait",
            type=waits.lock_wait,
            default=LOCK_WAIT_S,
            metavar="S",
            help="seconds to wait for other migrators",
        )
        parser.add_argument(
            "--lock-timeout",
            type=waits.lock_timeout,
            default=LOCK_TIMEOUT_MS / 1000,
            metavar="S",
            help="seconds each try waits for table locks",
        )
        parser.add_argument("--adopt", action="store_true", help="write into the ledger what was migrated around it")
        parser.add_argument(
            "--allow-fake",
            action="store_true",
            help="record an initial migration whose tables exist already instead of running it",
        )

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Run, and end with the exit code that automation branches on."""
        with told():
            database = options["database"] or conf.current().owner_database
        try:
            with ledger.refusing(database):
                self._handle(database, options)
        except ledger.LedgerError as error:
            if options["format"] == "json":
                body = {"code": error.code, "message": error.message, "mend": error.mend, "exit": error.exit_code}
                self.stdout.write(json.dumps({"error": body}))
            raise CommandError(str(error), returncode=error.exit_code) from error

    def _handle(self, database: str, options: dict[str, Any]) -> None:
        ledger.connect(database)
        # As Django's commands: call_command() leaves the system checks out; the registry refuses anyway.
        if not options.get("skip_checks"):
            self._check(database)
        if options["check"] or options["plan"]:
            self._show(options)
        elif options["rehash"]:
            ledger.rehash(options["rehash"], options["reason"], options["database"], lock_wait=options["lock_wait"])
            self._answer(options, {"rehashed": options["rehash"]}, f"Rehashed {options['rehash']}.")
        else:
            self._migrate(options)

    def _check(self, database: str) -> None:
        try:
            self.check(tags=[Tags.models, Tags.database, "compute"], databases=[database])
        except SystemCheckError as error:
            raise ledger.Refused(str(error).strip()) from error

    def _show(self, options: dict[str, Any]) -> None:
        executor = ledger.reader(options["database"])
        drifts = ledger.drift.find(executor)
        planned = ledger.planned(executor, options["module"])
        names = [name for name, _ in planned if name]
        lines = []
        for name, migration in planned:
            lines.append(name or f"{migration.app_label}.{migration.name}")
            if options["plan"]:
                lines += [f"    {operation.describe()}" for operation in migration.operations]
        body = {
            "pending": names,
            "drift": [{"name": each.name, "kind": each.kind, "text": each.text} for each in drifts],
        }
        if lines or not drifts or options["format"] == "json":
            self._answer(options, body, "\n".join(lines) or "Nothing is pending.")
        if drifts:
            raise CommandError(str(ledger.Drifted([str(each) for each in drifts])), returncode=ledger.Drifted.exit_code)
        if names and options["check"]:
            raise CommandError(f"{_counted(names)} pending.", returncode=PENDING)

    def _migrate(self, options: dict[str, Any]) -> None:
        table = options["format"] == "table"
        progress = MigrationProgress(self.stdout if table else self.stderr, quiet=not table or not options["verbosity"])
        try:
            applied = ledger.migrate(
                options["database"],
                module=options["module"],
                progress=progress,
                say=self.stderr.write,
                lock_wait=options["lock_wait"],
                lock_timeout=options["lock_timeout"],
                adopt=options["adopt"],
                allow_fake=options["allow_fake"],
                verbosity=max(0, options["verbosity"] - 1),
            )
        finally:
            progress.close()
        body = {"applied": [{"name": name, "seconds": progress.seconds.get(name, 0.0)} for name in applied]}
        if not table or options["verbosity"]:
            self._answer(
                options,
                body,
                f"Applied {len(applied)} migration{'s' if applied[1:] else ''}." if applied else "Nothing is pending.",
            )

    def _answer(self, options: dict[str, Any], body: dict[str, Any], text: str) -> None:
        self.stdout.write(json.dumps(body) if options["format"] == "json" else text)


def _counted(names: list[str]) -> str:
    return "1 migration is" if len(names) == 1 else f"{len(names)} migrations are"
