"""``manage.py compute_module``: which modules are hosted, what one brings, and taking one out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.conf import ENVIRONMENT_VARIABLE
from django.core.management.base import BaseCommand, CommandError, CommandParser

from better_compute import conf, ledger, registry
from better_compute.contract.module import ModuleSpec
from better_compute.ledger.turn import LOCK_WAIT_S
from better_compute.management import waits
from better_compute.management.refusals import told

#: Runs the checks and the plan of this project with one app more; a fresh process, since Django loads apps once.
WITH_APP = """
import sys, django
from django.conf import settings
settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, sys.argv[1]]
django.setup()
from django.core.management import call_command
call_command("check")
call_command("compute_migrate", plan=True)
"""


class Command(BaseCommand):
    """List, show, try out and remove modules."""

    help = "List hosted modules, show one, check one before it is added, or remove one's tables."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the four verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="every hosted module, and owners that are no longer installed")
        show = verbs.add_parser("show", help="what one module brings and where its migrations stand")
        show.add_argument("name")
        add_check = verbs.add_parser("add-check", help="what adding an app to INSTALLED_APPS would do; changes nothing")
        add_check.add_argument("app", help="import path, as it would stand in INSTALLED_APPS")
        remove = verbs.add_parser("remove", help="drop a module's tables and record that it was removed")
        remove.add_argument("name")
        sure = remove.add_mutually_exclusive_group(required=True)
        sure.add_argument("--plan", action="store_true", help="show what would go; change nothing")
        sure.add_argument("--yes", action="store_true", help="do it; the rows of its tables are lost")
        remove.add_argument("--lock-wait", type=waits.lock_wait, default=LOCK_WAIT_S, metavar="S")
        for verb in (listing, show, remove):
            verb.add_argument("--database", help="alias (default: COMPUTE['MIGRATION_DATABASE'])")
            verb.add_argument("--format", choices=("table", "json"), default="table")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the verb."""
        verbs: dict[str, Callable[[dict[str, Any]], None]] = {
            "list": self._list,
            "show": self._show,
            "add-check": self._add_check,
            "remove": self._remove,
        }
        try:
            with told(), ledger.refusing(options.get("database") or conf.current().owner_database):
                verbs[options["verb"]](options)
        except ledger.LedgerError as error:
            raise CommandError(str(error), returncode=error.exit_code) from error

    def _list(self, options: dict[str, Any]) -> None:
        executor = ledger.reader(options["database"])
        pending = {name for name, _ in ledger.planned(executor)}
        versions = {owner.name: owner.version for owner in executor.owners.values()}
        rows = [
            {
                "name": spec.name,
                "kind": "plugin" if spec.plugin_id else "module",
                "version": versions[spec.name],
                "app": spec.path,
                "migrations": len(spec.migrations),
                "pending": sum(name in pending for name in spec.migrations),
            }
            for spec in registry.current().modules
        ]
        orphans = ledger.findings.orphans(executor)
        if options["format"] == "json":
            self.stdout.write(json.dumps({"modules": rows, "orphans": orphans}))
            return
        for row in rows:
            waiting = f", {row['pending']} pending" if row["pending"] else ""
            self.stdout.write(
                f"{row['name']:<20} {row['kind']:<7} {row['version']:<12} {row['migrations']} migrations{waiting}"
                f"  {row['app']}"
            )
        for owner, count in sorted(orphans.items()):
            self.stdout.write(f"{owner:<20} not installed, {count} migrations in the schema")

    def _show(self, options: dict[str, Any]) -> None:
        executor = ledger.reader(options["database"])
        ledger.targets(executor, options["name"])
        spec = next(spec for spec in registry.current().modules if spec.name == options["name"])
        pending = {name for name, _ in ledger.planned(executor)}
        body = self._body(spec, pending)
        if options["format"] == "json":
            self.stdout.write(json.dumps(body))
            return
        for title, value in body.items():
            lines = value if isinstance(value, list) else [value]
            self.stdout.write(f"{title}: {', '.join(str(line) for line in lines) or '-'}")

    @staticmethod
    def _body(spec: ModuleSpec, pending: set[str]) -> dict[str, Any]:
        return {
            "name": spec.name,
            "app": spec.path,
            "label": spec.label,
            "requires": list(spec.requires),
            "applied": [name for name in spec.migrations if name not in pending],
            "pending": [name for name in spec.migrations if name in pending],
            "methods": [method.path for method in spec.methods],
            "actions": list(spec.catalog.actions),
            "reconcilers": [reconciler.name for reconciler in spec.reconcilers],
            "commands": [f"{spec.name}:{command.name}" for command in spec.commands],
        }

    def _add_check(self, options: dict[str, Any]) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        if not environment.get(ENVIRONMENT_VARIABLE):
            raise CommandError(f"{ENVIRONMENT_VARIABLE} is not set, so the project cannot be loaded a second time.")
        tried = subprocess.run(  # noqa: S603
            [sys.executable, "-c", WITH_APP, options["app"]],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.stdout.write(tried.stdout.strip())
        if tried.returncode:
            why = tried.stderr.strip().splitlines()
            start = next((at for at, line in enumerate(why) if "SystemCheckError" in line), len(why) - 1)
            raise CommandError(f"{options['app']} cannot be added:\n" + "\n".join(why[start:]), returncode=2)
        self.stdout.write(f"{options['app']} can be added to INSTALLED_APPS.")

    def _remove(self, options: dict[str, Any]) -> None:
        name, database = options["name"], options["database"]
        if options["plan"]:
            removal = ledger.removal.plan(name, database)
        else:
            removal = ledger.removal.remove(name, database, say=self.stderr.write, lock_wait=options["lock_wait"])
        if options["format"] == "json":
            self.stdout.write(
                json.dumps(
                    {
                        "migrations": removal.migrations,
                        "tables": removal.tables,
                        "irreversible": removal.irreversible,
                        "rows": asdict(removal.traces),
                        "permissions": removal.permissions,
                        "done": options["yes"],
                    }
                )
            )
            return
        verb = "Would remove" if options["plan"] else "Removed"
        self.stdout.write(f"{verb} {name}: migrations {', '.join(removal.migrations) or 'none'}.")
        self.stdout.write(f"Tables of its models: {', '.join(removal.tables) or 'none'}.")
        rows = ", ".join(f"{number} {what}" for what, number in asdict(removal.traces).items() if number)
        self.stdout.write(f"Rows of its reconcilers: {rows or 'none'}. Events and audit records stay.")
        self.stdout.write(f"Permissions, with whoever has them: {', '.join(removal.permissions) or 'none'}.")
        if removal.irreversible:
            self.stdout.write(
                f"{', '.join(removal.irreversible)} cannot be reversed: the tables of the models are dropped, and what "
                "raw SQL made besides must go by hand."
            )
        if options["yes"]:
            self.stdout.write("Take it out of INSTALLED_APPS now; else the next migrate makes it again.")
