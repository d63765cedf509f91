"""Extensions of modules and of the settings."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from better_compute import (
    Extension,
    define_attestor,
    define_audit_sink,
    define_driver,
    define_event_sink,
    define_pool_policy,
    define_scheduler_plugin,
    define_usage_sink,
    registry,
)

from .specs import module, plugin, told


def test_an_extension_that_no_helper_built_is_refused() -> None:
    forged = Extension("driver", "ipmi", "1.0", object)
    assert told(module(extensions=(forged,))) == [
        (
            "compute.E020",
            f"Module 'gadgets': extension {forged!r} was not built with a define_* helper.",
            "Build it with define_driver(), define_event_sink() or the helper of its kind.",
        )
    ]


def test_extensions_are_unique_by_kind_id_and_version_over_all_modules() -> None:
    power = define_driver("power", version="1.0", driver=object())
    again = define_driver("power", version="1.0", driver=object())
    assert told(module(extensions=(power,)), plugin(extensions=(again,))) == [
        (
            "compute.E021",
            "Plugin 'acme': extension driver:power@1.0 is also brought by module 'gadgets'.",
            "Keep one of the two, or give it another id or version.",
        )
    ]


def test_one_id_may_come_in_two_versions_and_two_kinds() -> None:
    extensions = (
        define_driver("power", version="1.0", driver=object()),
        define_driver("power", version="1.1", driver=object()),
        define_attestor("power", version="1.0", attestor=object()),
        define_pool_policy("power", version="1.0", validate=lambda policy, pool: None),
    )
    assert told(module(extensions=extensions)) == []


def test_a_modules_usage_sink_is_refused() -> None:
    assert told(module(extensions=(define_usage_sink("meter", version="1", sink=object()),))) == [
        (
            "compute.E022",
            "Module 'gadgets': usage sink 'meter' is refused.",
            "Remove it: usage goes to billing through the IAM bridge.",
        )
    ]


def test_a_usage_sink_in_the_settings_is_refused() -> None:
    sink = define_usage_sink("meter", version="1", sink=object())
    with override_settings(COMPUTE={"SINKS": {"USAGE": [sink]}}):
        assert told(module()) == [
            (
                "compute.E022",
                "COMPUTE['SINKS']['USAGE']: usage sink 'meter' is refused.",
                "Remove it: usage goes to billing through the IAM bridge.",
            )
        ]


@pytest.mark.parametrize(
    ("id", "version", "message", "mend"),
    [
        (
            "Power",
            "1.0",
            "the id 'Power' of a driver does not match ^[a-z][a-z0-9._-]{0,63}$.",
            "Give it an id such as acme-power.",
        ),
        (
            "power",
            "v1",
            "the version 'v1' of a driver does not match ^[0-9]{1,6}(\\.[0-9]{1,6}){0,3}$.",
            "Give it a version such as 1.0.",
        ),
    ],
)
def test_ids_and_versions_of_extensions_are_well_formed(id: str, version: str, message: str, mend: str) -> None:
    extension = define_driver(id, version=version, driver=object())
    assert told(module(extensions=(extension,))) == [("compute.E023", f"Module 'gadgets': {message}", mend)]


def _lists(driver: Any, attestor: Any, scheduler: Any, event: Any, audit: Any) -> dict[str, Any]:
    return {
        "DRIVERS": [driver],
        "ATTESTORS": [attestor],
        "SCHEDULER": {"PLUGINS": [scheduler]},
        "SINKS": {"EVENTS": [event], "AUDIT": [audit]},
    }


def test_extensions_of_the_settings_join_those_of_modules() -> None:
    given = _lists(
        define_driver("power", version="1", driver=object()),
        define_attestor("tpm", version="1", attestor=object()),
        define_scheduler_plugin("pack", version="1", plugin=object()),
        define_event_sink("bus", version="1", sink=object()),
        define_audit_sink("vault", version="1", sink=object()),
    )
    own = define_driver("blade", version="1", driver=object())
    with override_settings(COMPUTE=given), registry.override(module(extensions=(own,))):
        assert list(registry.current().extensions) == [
            "driver:power@1",
            "attestor:tpm@1",
            "scheduler-plugin:pack@1",
            "event-sink:bus@1",
            "audit-sink:vault@1",
            "driver:blade@1",
        ]


def test_an_extension_of_another_kind_in_a_list_of_the_settings_is_refused() -> None:
    with override_settings(COMPUTE={"DRIVERS": [define_attestor("tpm", version="1", attestor=object())]}):
        assert told(module()) == [
            (
                "compute.E020",
                "COMPUTE['DRIVERS']: extension attestor:tpm@1 is no driver.",
                "List only extensions built with define_driver() there.",
            )
        ]


def test_an_entry_of_the_settings_that_no_helper_built_is_refused() -> None:
    with override_settings(COMPUTE={"SINKS": {"EVENTS": ["bus"]}}):
        assert told(module()) == [
            (
                "compute.E020",
                "COMPUTE['SINKS']['EVENTS']: extension 'bus' was not built with a define_* helper.",
                "Build it with define_driver(), define_event_sink() or the helper of its kind.",
            )
        ]


def test_an_extension_in_the_settings_and_in_a_module_is_a_duplicate() -> None:
    with override_settings(COMPUTE={"DRIVERS": [define_driver("power", version="1", driver=object())]}):
        assert told(module(extensions=(define_driver("power", version="1", driver=object()),))) == [
            (
                "compute.E021",
                "Module 'gadgets': extension driver:power@1 is also brought by COMPUTE['DRIVERS'].",
                "Keep one of the two, or give it another id or version.",
            )
        ]
