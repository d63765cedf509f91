"""``manage.py doctor``: what is wrong with this installation, for people and for automation."""

from __future__ import annotations

import shutil
import sys
import textwrap
from argparse import ArgumentParser
from typing import Any, Final

import msgspec
from django.core.management.base import BaseCommand, CommandError

from better_compute import doctor
from better_compute.contract.errors import ComputeError
from better_compute.contract.findings import Finding, Report, Severity

#: Worst first.
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
#: Widest the table becomes, in columns.
WIDEST: Final = 120
_FAILED: Final = 1
_USAGE: Final = 2


class Command(BaseCommand):
    """Prints findings, and exits 1 when one is at or above the fail level."""

    help = "Examine this installation: configuration, migrations, queue, leases, clocks and every module's self-check."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Format, fail level and module."""
        parser.add_argument("--format", choices=("table", "json"), default="table", help="table (default) or json")
        parser.add_argument(
            "--fail-level",
            choices=(*SEVERITIES, "never"),
            default="error",
            help="exit 1 when a finding is at or above it (default: error)",
        )
        parser.add_argument("--module", help="report on this module only")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report; exit 0 or 1, and 2 for a module that is not hosted."""
        try:
            report = doctor.report(options["module"])
        except ComputeError as refusal:
            raise CommandError(str(refusal), returncode=_USAGE) from None
        if options["format"] == "json":
            self.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        else:
            self._table(report)
        if fails(report, options["fail_level"]):
            sys.exit(_FAILED)

    def _table(self, report: Report) -> None:
        width = min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
        for severity in SEVERITIES:
            for finding in report.findings:
                if finding.severity == severity:
                    self._finding(finding, width)
        self.stdout.write(self._summary(report))

    def _finding(self, finding: Finding, width: int) -> None:
        style = {"error": self.style.ERROR, "warning": self.style.WARNING, "info": self.style.NOTICE}
        self.stdout.write(f"{style[finding.severity](finding.severity.upper().ljust(7))}  {finding.check}")
        for label, text in (("", finding.message), ("fix: ", finding.fix)):
            self.stdout.write(
                textwrap.fill(
                    text,
                    width=width,
                    initial_indent=f"         {label}",
                    subsequent_indent=" " * (9 + len(label)),
                    break_on_hyphens=False,
                )
            )

    def _summary(self, report: Report) -> str:
        if not report.findings:
            return self.style.SUCCESS("ok, nothing to report")
        plural = {"error": "errors", "warning": "warnings", "info": "infos"}
        counted = {severity: sum(each.severity == severity for each in report.findings) for severity in SEVERITIES}
        text = ", ".join(
            f"{count} {severity if count == 1 else plural[severity]}" for severity, count in counted.items() if count
        )
        return self.style.SUCCESS(f"ok: {text}") if report.ok else self.style.ERROR(f"not ok: {text}")


def fails(report: Report, level: str) -> bool:
    """Whether a finding is at or above ``level``; none is above ``never``."""
    failing = SEVERITIES[: SEVERITIES.index(level) + 1] if level in SEVERITIES else ()
    return any(finding.severity in failing for finding in report.findings)
