"""Django's own ``migrate`` on the same database, with the same apps: its command class, not our override."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand
from django.core.management.commands import migrate as django_migrate

CONFIGURATION = "django.core.management.commands.migrate.Command, verbosity 0, with its system checks, same process"


def command() -> BaseCommand:
    """A fresh command."""
    return django_migrate.Command()


def options() -> dict[str, Any]:
    """What both commands are called with."""
    return {"verbosity": 0, "interactive": False, "skip_checks": False}
