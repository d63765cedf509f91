"""``manage.py authz_matrix``: who may call what, and whether the method table still says so."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from better_compute.envelope.matrix import Matrix, matrix

_COLUMNS = ("method", "kind", "action", "resource", "module")


class Command(BaseCommand):
    """Print every hosted method; fail where it differs from contract/methods.toml."""

    help = (
        "Print every hosted method with its action, kind and resource, and the differences from the method table. "
        "Exit code 1 with --check when there are any."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """``--check`` and ``--format``."""
        parser.add_argument("--check", action="store_true", help="Fail on any difference from the method table.")
        parser.add_argument("--format", choices=("table", "json"), default="table", help="How to print it.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, and fail when asked to."""
        found = matrix()
        if options["format"] == "json":
            self.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode())
        else:
            self._print_table(found)
        if options["check"] and found.differences:
            raise CommandError(
                f"{len(found.differences)} difference(s) between the hosted methods and the method table. "
                "Correct the method or its row in better_compute/contract/methods.toml.",
                returncode=1,
            )

    def _print_table(self, found: Matrix) -> None:
        lines = [_COLUMNS, *(tuple(str(getattr(row, column)) for column in _COLUMNS) for row in found.methods)]
        widths = [max(len(line[index]) for line in lines) for index in range(len(_COLUMNS))]
        for line in lines:
            self.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        for difference in found.differences:
            self.stdout.write(self.style.ERROR(f"{difference.what}: {difference.method}: {difference.detail}"))
        if not found.differences:
            self.stdout.write(self.style.SUCCESS("The method table and the hosted methods agree."))
