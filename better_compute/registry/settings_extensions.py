"""Extensions that the host lists in ``COMPUTE`` beside those that modules bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from better_compute import conf
from better_compute.contract.extensions import ExtensionKind


@dataclass(frozen=True, slots=True)
class Given:
    """An entry of such a list: where it stands, what kind belongs there, and what was put there."""

    place: str
    kind: ExtensionKind
    value: Any


def given() -> list[Given]:
    """Every entry of DRIVERS, ATTESTORS, SCHEDULER.PLUGINS and SINKS.

    Raises
    ------
    ComputeError
        INVALID_CONFIG when ``COMPUTE`` itself cannot be read.
    """
    settings = conf.current()
    lists: tuple[tuple[str, ExtensionKind, tuple[Any, ...]], ...] = (
        ("COMPUTE['DRIVERS']", "driver", settings.drivers),
        ("COMPUTE['ATTESTORS']", "attestor", settings.attestors),
        ("COMPUTE['SCHEDULER']['PLUGINS']", "scheduler-plugin", settings.scheduler.plugins),
        ("COMPUTE['SINKS']['EVENTS']", "event-sink", settings.sinks.events),
        ("COMPUTE['SINKS']['AUDIT']", "audit-sink", settings.sinks.audit),
        ("COMPUTE['SINKS']['USAGE']", "usage-sink", settings.sinks.usage),
    )
    return [Given(place, kind, value) for place, kind, values in lists for value in values]
