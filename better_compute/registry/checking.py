"""Runs every registration rule over the modules that were read."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.checks import CheckMessage

from better_compute.contract.errors import ComputeError
from better_compute.contract.module import ModuleSpec
from better_compute.registry.reading import Reading
from better_compute.registry.rules import (
    catalog,
    command_kinds,
    commands,
    documents,
    extensions,
    method_table,
    migrations,
    modules,
    reconcilers,
    routes,
    settings,
)
from better_compute.registry.settings_extensions import Given, given
from better_compute.registry.shape import sound


def problems_of(readings: Sequence[Reading]) -> list[CheckMessage]:
    """Everything that ``readings``, in hosted order, break; queries no database and never raises for them."""
    found = [message for reading in readings for message in reading.problems]
    specs: list[ModuleSpec] = []
    for reading in readings:
        spec, unsound = sound(reading.spec)
        specs.append(spec)
        found += unsound
    rules = (
        modules,
        migrations,
        command_kinds,
        routes,
        catalog,
        reconcilers,
        documents,
        settings,
        method_table,
        commands,
    )
    for rule in rules:
        found += rule.check(specs)
    found += extensions.check(specs, _given())
    return found


def _given() -> Sequence[Given]:
    try:
        return given()
    except ComputeError:
        # The rule on settings reports that COMPUTE cannot be read.
        return ()
