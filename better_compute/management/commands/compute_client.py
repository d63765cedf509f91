"""``manage.py compute_client python|typescript``: a typed client of what is hosted."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from better_compute.envelope import clients, openapi


class Command(BaseCommand):
    """Write a client."""

    help = "Write a typed client of every hosted method, plugins included."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The language and ``--output``."""
        parser.add_argument("language", choices=["python", "typescript"])
        parser.add_argument("--output", type=Path, help="File to write; standard output without it.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it."""
        write = clients.python if options["language"] == "python" else clients.typescript
        source = write(openapi.document())
        if options["output"] is None:
            self.stdout.write(source, ending="")
        else:
            options["output"].write_text(source, encoding="utf-8")
