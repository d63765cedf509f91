"""Profiles, operators' commands and status handlers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from django.core.checks import CheckMessage

from better_compute.contract import names
from better_compute.contract.commands import CliCommand
from better_compute.contract.module import ModuleSpec, ModuleStatusHandler, ProfileDocument
from better_compute.registry import ids
from better_compute.registry.problem import error, shown, titled


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Judge what the modules list under profiles, commands and status_handlers."""
    yield from _profiles(specs)
    for spec in specs:
        yield from _commands(spec)
        yield from _status_handlers(spec)


def _profiles(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        for profile in spec.profiles:
            wrong = _malformed_profile(profile)
            if wrong is not None:
                what, mend = wrong
                yield error(ids.PROFILE, spec, f"profile {what}", mend)
                continue
            key = f"{profile.name}@{profile.version}"
            if key in first:
                yield error(
                    ids.PROFILE,
                    spec,
                    f"profile {key} is also brought by {titled(first[key]).lower()}.",
                    "Give it another name or version.",
                )
            else:
                first[key] = spec


def _malformed_profile(profile: object) -> tuple[str, str] | None:
    if not isinstance(profile, ProfileDocument):
        return f"{shown(profile)} is no ProfileDocument.", "Write ProfileDocument(name, version, document)."
    title = shown(profile.name)
    if not names.matches(names.EXTENSION_ID, profile.name):
        return f"{title} has a name that does not match ^{names.EXTENSION_ID.pattern}$.", "Name it like 'gpu-node'."
    if not names.matches(names.EXTENSION_VERSION, profile.version):
        return (
            f"{title} has version {shown(profile.version)}, which does not match ^{names.EXTENSION_VERSION.pattern}$.",
            "Write a version such as '1' or '2.1'.",
        )
    if not isinstance(profile.document, Mapping):
        return f"{title} has document {shown(profile.document)}, which is no mapping.", "Give it as a dictionary."
    try:
        msgspec.json.encode(dict(profile.document))
    except Exception as problem:
        return f"{title} has a document that is no JSON: {problem}.", "Let it hold only what JSON can carry."
    return None


def _commands(spec: ModuleSpec) -> Iterator[CheckMessage]:
    seen: set[str] = set()
    for command in spec.commands:
        wrong = _malformed_command(command, seen)
        if wrong is not None:
            what, mend = wrong
            yield error(ids.CLI_COMMAND, spec, f"command {what}", mend)


def _malformed_command(command: object, seen: set[str]) -> tuple[str, str] | None:
    if not isinstance(command, CliCommand):
        return f"{shown(command)} is no CliCommand.", "Write CliCommand(name=..., summary=..., run=...)."
    title = shown(command.name)
    if not names.matches(names.CLI_COMMAND, command.name):
        return f"{title} does not match ^{names.CLI_COMMAND.pattern}$.", "Name it like 'prune'."
    if command.name in seen:
        return f"{title} is declared twice.", "Rename one of the two."
    seen.add(command.name)
    if not isinstance(command.summary, str) or not command.summary.strip():
        return f"{title} has no summary.", "Say in one line what it does; the listing shows it."
    for field in ("run", "arguments"):
        if not callable(getattr(command, field)):
            return f"{title} has {field} = {shown(getattr(command, field))}.", f"Give a function as {field}."
    return None


def _status_handlers(spec: ModuleSpec) -> Iterator[CheckMessage]:
    for handler in spec.status_handlers:
        wrong: tuple[str, str] | None = None
        if not isinstance(handler, ModuleStatusHandler):
            wrong = f"{shown(handler)} is no ModuleStatusHandler.", "Write ModuleStatusHandler(section, handle)."
        elif not names.matches(names.RESOURCE_TYPE, handler.section):
            wrong = (
                f"has section {shown(handler.section)}, which does not match ^{names.RESOURCE_TYPE.pattern}$.",
                "Name a section of the node's report, e.g. 'devices'.",
            )
        elif not callable(handler.handle):
            wrong = (
                f"for section {handler.section!r} has handle = {shown(handler.handle)}, which is no function.",
                "Give `def handle(ctx, node, report)`.",
            )
        if wrong is not None:
            yield error(ids.STATUS_HANDLER, spec, f"status handler {wrong[0]}", wrong[1])
