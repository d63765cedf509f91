"""Django's own commands, where another app has put its own in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Warning
from django.core.management import get_commands
from django.core.management.commands import makemigrations

from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """``makemigrations`` still writes the triggers that models declare: django-pgtrigger patches its autodetector."""
    if not apps.is_installed("pgtrigger"):
        return
    app = get_commands().get("makemigrations", "django.core")
    if app != "django.core":
        yield _warning(
            f"`manage.py makemigrations` is the command of {app!r}, whose autodetector may know nothing of triggers.",
            f"Remove {app!r} from INSTALLED_APPS where migrations are made, or look at each one for its triggers.",
        )
        return
    # pgtrigger names its base so; importing it here would need a configured project.
    command: Any = makemigrations.Command
    if not any(base.__module__ == "pgtrigger.migrations" for base in command.autodetector.__mro__):
        detector = command.autodetector
        yield _warning(
            f"makemigrations uses {detector.__module__}.{detector.__qualname__}, which is not django-pgtrigger's "
            "autodetector, so changed triggers would get no migration.",
            "Put the app that replaces it before 'pgtrigger' in INSTALLED_APPS, or remove it.",
        )


def _warning(what: str, mend: str) -> CheckMessage:
    return Warning(what, hint=mend, obj="settings", id=ids.AUTODETECTOR)
