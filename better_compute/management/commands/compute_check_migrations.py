"""``manage.py compute_check_migrations``: advice for module authors before they ship."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from dataclasses import asdict
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from better_compute import ledger, registry
from better_compute.contract.module import ModuleSpec
from better_compute.management.refusals import told

#: Packages of this distribution.
OURS: Final = frozenset({"better_compute", "compute_modules"})


class Command(BaseCommand):
    """Read the migrations of hosted modules and say what would hurt a running system."""

    help = "Advise on migrations that lock, break old code, use now() or cannot be undone. Exits 1 when any does."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("modules", nargs="*", help="names of modules (default: all but those of Better Compute)")
        parser.add_argument("--format", choices=("table", "json"), default="table")
        parser.add_argument(
            "--ignore",
            action="append",
            default=[],
            type=_ignored,
            metavar="[NAME:]CODE",
            help="advice to leave out, of every migration or of one that has shipped, e.g. acme/0002_index:BIG_LOCK",
        )

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
            if name in options["modules"] or not (options["modules"] or _ours(spec))
            for advice in ledger.lint.check(
                spec, [files[key] for key in sorted(key for key in files if key[0] == spec.label)]
            )
            if not {advice.code, f"{advice.name}:{advice.code}"} & set(options["ignore"])
        ]
        if options["format"] == "json":
            self.stdout.write(json.dumps([asdict(advice) for advice in found]))
        else:
            self.stdout.write("\n".join(str(advice) for advice in found) or "Nothing to advise.")
        if found:
            raise CommandError(f"{len(found)} pieces of advice.", returncode=1)


def _ours(spec: ModuleSpec) -> bool:
    """Whether the module comes with Better Compute, so that no host can mend it."""
    return spec.path.partition(".")[0] in OURS


def _ignored(text: str) -> str:
    if text.rpartition(":")[2] not in ledger.lint.RULES:
        raise ArgumentTypeError(f"{text!r} ends in no code; the codes are {', '.join(sorted(ledger.lint.RULES))}")
    return text
