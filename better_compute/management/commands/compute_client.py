"""``manage.py compute_client python|typescript``: a typed client of what is hosted."""

from __future__ import annotations

import difflib
import itertools
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from better_compute.envelope import clients, openapi
from better_compute.management.refusals import told

#: Lines of a difference that are shown.
SHOWN: Final = 40


class Command(BaseCommand):
    """Write a client, or check that one is written."""

    help = "Write a typed client of every hosted method, plugins included."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The language and ``--output``."""
        parser.add_argument("language", choices=["python", "typescript"])
        parser.add_argument("--output", type=Path, help="File to write; standard output without it.")
        parser.add_argument("--check", action="store_true", help="Fail where the file differs, and write nothing.")

    @told()
    def handle(self, *args: Any, **options: Any) -> None:
        """Write it, or compare it."""
        write = clients.python if options["language"] == "python" else clients.typescript
        source = write(openapi.document())
        if options["check"]:
            self._check(options["output"], source, options["language"])
        elif options["output"] is None:
            self.stdout.write(source, ending="")
        else:
            options["output"].write_text(source, encoding="utf-8")

    def _check(self, path: Path | None, source: str, language: str) -> None:
        if path is None:
            raise CommandError("--check compares a file; give it with --output.", returncode=2)
        written = path.read_text(encoding="utf-8") if path.exists() else ""
        if written == source:
            return
        lines = difflib.unified_diff(written.splitlines(), source.splitlines(), str(path), "hosted", lineterm="")
        shown = itertools.islice(lines, SHOWN)
        mend = (
            f"{path} is not the client of what is hosted; `compute_client {language} --output {path}` writes it anew."
        )
        raise CommandError("\n".join([*shown, mend]))
