"""``manage.py compute_check_migrations``: advice for module authors before they ship."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from better_compute import ledger, registry
from better_compute.management.refusals import told


class Command(BaseCommand):
    """Read the migrations of hosted modules and say what would hurt a running system."""

    help = "Advise on migrations that lock, break old code, use now() or cannot be undone. Exits 1 when any does."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("modules", nargs="*", help="names of modules (default: all but the core)")
        parser.add_argument("--format", choices=("table", "json"), default="table")
        parser.add_argument("--ignore", action="append", default=[], metavar="CODE", choices=sorted(ledger.lint.RULES))

    @told()
    def handle(self, *args: Any, **options: Any) -> None:
        """Print the advice; exit 1 when there is any, 2 for a module that is not hosted."""
        # First, since it refuses files that cannot be read.
        specs = {spec.name: spec for spec in registry.current().modules}
        files = ledger.graph.files().disk_migrations
        unknown = sorted(set(options["modules"]) - set(specs))
        if unknown:
            raise CommandError(f"Not hosted here: {', '.join(unknown)}; hosted are {', '.join(specs)}.", returncode=2)
        found = [
            advice
            for name, spec in specs.items()
            if name in (options["modules"] or specs.keys() - {"core"})
            for advice in ledger.lint.check(
                spec, [files[key] for key in sorted(key for key in files if key[0] == spec.label)]
            )
            if advice.code not in options["ignore"]
        ]
        if options["format"] == "json":
            self.stdout.write(json.dumps([asdict(advice) for advice in found]))
        else:
            self.stdout.write("\n".join(str(advice) for advice in found) or "Nothing to advise.")
        if found:
            raise CommandError(f"{len(found)} pieces of advice.", returncode=1)
