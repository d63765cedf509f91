"""The registration rules as Django system checks of the tag ``compute``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, register

from better_compute import registry

TAG: Final = "compute"


def registration_rules(app_configs: Sequence[AppConfig] | None = None, **_: Any) -> list[CheckMessage]:
    """Report every broken rule; rules speak of all hosted modules, so a run for some apps shows theirs only."""
    found = registry.problems()
    if app_configs is None:
        return found
    wanted = {config.name for config in app_configs}
    return [message for message in found if message.obj in wanted]


def install() -> None:
    """Register the checks with Django; called once the apps are ready."""
    register(registration_rules, TAG)
