"""Profiles, operators' commands and status handlers."""

from __future__ import annotations

from typing import Any

import pytest

from better_compute import CliCommand, ModuleStatusHandler, ProfileDocument

from .specs import module, plugin, told


def profile(name: Any = "gpu-node", version: Any = "1", document: Any = None) -> ProfileDocument:
    return ProfileDocument(name, version, {"kernel": "6.12"} if document is None else document)


@pytest.mark.parametrize(
    ("value", "message", "mend"),
    [
        ("gpu-node", "'gpu-node' is no ProfileDocument.", "Write ProfileDocument(name, version, document)."),
        (
            profile(name="GPU"),
            "'GPU' has a name that does not match ^[a-z][a-z0-9._-]{0,63}$.",
            "Name it like 'gpu-node'.",
        ),
        (
            profile(version="one"),
            "'gpu-node' has version 'one', which does not match ^[0-9]{1,6}(\\.[0-9]{1,6}){0,3}$.",
            "Write a version such as '1' or '2.1'.",
        ),
        (profile(document=[1]), "'gpu-node' has document [1], which is no mapping.", "Give it as a dictionary."),
        (
            profile(document={"x": 1j}),
            "'gpu-node' has a document that is no JSON: Encoding objects of type complex is unsupported.",
            "Let it hold only what JSON can carry.",
        ),
    ],
)
def test_a_malformed_profile_is_refused(value: Any, message: str, mend: str) -> None:
    assert told(module(profiles=(value,))) == [("compute.E060", f"Module 'gadgets': profile {message}", mend)]


def test_profiles_are_unique_by_name_and_version() -> None:
    assert told(module(profiles=(profile(), profile(version="2"))), plugin(profiles=(profile(),))) == [
        (
            "compute.E060",
            "Plugin 'acme': profile gpu-node@1 is also brought by module 'gadgets'.",
            "Give it another name or version.",
        )
    ]


def command(**fields: Any) -> CliCommand:
    return CliCommand(**{"name": "prune", "summary": "Prune widgets.", "run": lambda ctx, options: 0, **fields})


@pytest.mark.parametrize(
    ("values", "message", "mend"),
    [
        (("prune",), "'prune' is no CliCommand.", "Write CliCommand(name=..., summary=..., run=...)."),
        (
            (command(name="Prune all"),),
            "'Prune all' does not match ^[a-z][a-z0-9-]{0,63}$.",
            "Name it like 'prune'.",
        ),
        ((command(), command()), "'prune' is declared twice.", "Rename one of the two."),
        (
            (command(summary=" "),),
            "'prune' has no summary.",
            "Say in one line what it does; the listing shows it.",
        ),
        ((command(run=None),), "'prune' has run = None.", "Give a function as run."),
        ((command(arguments=5),), "'prune' has arguments = 5.", "Give a function as arguments."),
    ],
)
def test_a_malformed_command_is_refused(values: tuple[Any, ...], message: str, mend: str) -> None:
    assert told(module(commands=values)) == [("compute.E061", f"Module 'gadgets': command {message}", mend)]


def test_two_modules_may_bring_a_command_of_one_name() -> None:
    assert told(module(commands=(command(),)), plugin(commands=(command(),))) == []


@pytest.mark.parametrize(
    ("value", "message", "mend"),
    [
        ("devices", "'devices' is no ModuleStatusHandler.", "Write ModuleStatusHandler(section, handle)."),
        (
            ModuleStatusHandler("Devices", lambda ctx, node, report: None),
            "has section 'Devices', which does not match ^[a-z][a-z0-9-]{0,63}$.",
            "Name a section of the node's report, e.g. 'devices'.",
        ),
        (
            ModuleStatusHandler("devices", None),  # type: ignore[arg-type]
            "for section 'devices' has handle = None, which is no function.",
            "Give `def handle(ctx, node, report)`.",
        ),
    ],
)
def test_a_malformed_status_handler_is_refused(value: Any, message: str, mend: str) -> None:
    assert told(module(status_handlers=(value,))) == [
        ("compute.E062", f"Module 'gadgets': status handler {message}", mend)
    ]
