"""``manage.py compute_openapi``: the OpenAPI document of what is hosted."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand

from better_compute.envelope import openapi
from better_compute.management.refusals import told


class Command(BaseCommand):
    """Write the OpenAPI 3.1 document."""

    help = "Write the OpenAPI 3.1 document of every hosted method."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """``--output``."""
        parser.add_argument("--output", type=Path, help="File to write; standard output without it.")

    @told()
    def handle(self, *args: Any, **options: Any) -> None:
        """Write it."""
        text = msgspec.json.format(openapi.encode(), indent=2).decode()
        if options["output"] is None:
            self.stdout.write(text)
        else:
            options["output"].write_text(f"{text}\n", encoding="utf-8")
