"""``manage.py authz_matrix``: who may call what, and whether the method table still says so."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from better_compute.envelope.matrix import Matrix, matrix
from better_compute.management.refusals import told

_COLUMNS = ("method", "kind", "action", "resource", "module")
#: What an outcome looks like in the table.
_LETTERS = {"allowed": "A", "ACCESS_DENIED": "D", "NOT_FOUND": "-"}


class Command(BaseCommand):
    """Print who may call every hosted method; fail where it differs from contract/methods.toml."""

    help = (
        "Print every hosted method with its action, kind and resource, what each built-in role may do with it where, "
        "and the differences from the method table. Exit code 1 with --check when there are any."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """``--check`` and ``--format``."""
        parser.add_argument(
            "--check",
            action="store_true",
            help="Fail on any difference from the method table, and on a role that reaches beyond its tenant.",
        )
        parser.add_argument("--format", choices=("table", "json"), default="table", help="How to print it.")

    @told()
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
                "Correct the method or its row in better_compute/contract/methods.toml, or the role.",
                returncode=1,
            )

    def _print_table(self, found: Matrix) -> None:
        roles = tuple(found.methods[0].roles) if found.methods else ()
        lines = [
            (*_COLUMNS, *roles),
            *(
                (*(str(getattr(row, column)) for column in _COLUMNS), *(_letters(row.roles[role]) for role in roles))
                for row in found.methods
            ),
        ]
        widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
        for line in lines:
            self.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if roles:
            self.stdout.write(
                f"A role's letters are for tenants that stand to its own as: {', '.join(found.relations)}. A allowed, "
                "D ACCESS_DENIED, - NOT_FOUND. For resource system, own is the root and the others are any tenant."
            )
        for row in found.methods:
            if row.deprecated:
                self.stdout.write(f"{row.method} is deprecated: use {row.deprecated}.")
        for difference in found.differences:
            self.stdout.write(self.style.ERROR(f"{difference.what}: {difference.method}: {difference.detail}"))
        if not found.differences:
            self.stdout.write(self.style.SUCCESS("The method table and the hosted methods agree."))


def _letters(outcomes: dict[str, str]) -> str:
    return "".join(_LETTERS.get(outcome, "?") for outcome in outcomes.values())
