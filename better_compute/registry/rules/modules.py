"""Modules themselves: names, plugin ids and what they require."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.core.checks import CheckMessage

from better_compute import __version__
from better_compute.contract import names, versions
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, shown, titled


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Names are well formed and unique, plugin ids likewise; requirements and the core's release are met."""
    yield from _names(specs)
    yield from _labels(specs)
    yield from _plugin_ids(specs)
    yield from _requirements(specs)
    yield from _core_versions(specs)


def _names(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        if not names.matches(names.MODULE_NAME, spec.name):
            # A plugin's name defaults to its id, which then is what is wrong.
            if spec.plugin_id != spec.name:
                yield error(
                    ids.MODULE_NAME,
                    spec,
                    f"its name does not match ^{names.MODULE_NAME.pattern}$.",
                    f"Set module_name on the AppConfig of {spec.path} to a name such as 'acme' or 'site-boot'.",
                )
            continue
        other = first.setdefault(spec.name, spec)
        if other is not spec:
            yield error(
                ids.DUPLICATE_MODULE,
                spec,
                f"{other.path} has the same name.",
                f"Rename one of {other.path} and {spec.path}, or remove one from INSTALLED_APPS.",
            )


def _labels(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        other = first.setdefault(spec.label, spec)
        # Of two with one name or one id that is said already, and the label follows from it.
        if other is spec or other.name == spec.name or (spec.plugin_id and other.plugin_id == spec.plugin_id):
            continue
        yield error(
            ids.DUPLICATE_MODULE,
            spec,
            f"its Django label {spec.label!r} is also that of {titled(other).lower()} ({other.path}).",
            f"Set another label on the AppConfig of {spec.path} or of {other.path}; tables are named by it.",
        )


def _plugin_ids(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        if spec.plugin_id is None:
            continue
        if not names.matches(names.MODULE_NAME, spec.plugin_id):
            yield error(
                ids.PLUGIN_ID,
                spec,
                f"its id {spec.plugin_id!r} does not match ^{names.MODULE_NAME.pattern}$.",
                f"Set id on the AppConfig of {spec.path} to a name such as 'acme'.",
            )
            continue
        if spec.plugin_id in names.RESERVED_PLUGIN_IDS:
            yield error(
                ids.PLUGIN_ID,
                spec,
                f"its id {spec.plugin_id!r} is reserved.",
                f"Set another id on the AppConfig of {spec.path}; clients have it as the name of an attribute.",
            )
        label = f"plg_{spec.plugin_id.replace('-', '_')}"
        if spec.label != label:
            yield error(
                ids.PLUGIN_ID,
                spec,
                f"its Django label is {spec.label!r} instead of {label!r}.",
                f"Remove label from the AppConfig of {spec.path}; it follows from the id.",
            )
        other = first.setdefault(spec.plugin_id, spec)
        if other is not spec:
            yield error(
                ids.PLUGIN_ID,
                spec,
                f"its id {spec.plugin_id!r} is also the id of {titled(other).lower()} ({other.path}).",
                "Give one of the two another id; routes and actions are named by it.",
            )


def _requirements(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    hosted = {spec.name for spec in specs}
    for spec in specs:
        for required in spec.requires:
            if not isinstance(required, str) or required not in hosted:
                yield error(
                    ids.REQUIRES,
                    spec,
                    f"it requires {shown(required)}, which is not hosted.",
                    "Add that module's app to INSTALLED_APPS, or correct `requires`.",
                )


def _core_versions(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    for spec in specs:
        try:
            if versions.satisfies(__version__, spec.core_versions):
                continue
        except ValueError as problem:
            yield error(
                ids.CORE_VERSIONS,
                spec,
                f"core_versions is {shown(spec.core_versions)}: {problem}.",
                "Write bounds such as core_versions = '>=1.2,<2'.",
            )
            continue
        yield error(
            ids.CORE_VERSIONS,
            spec,
            f"it works with better_compute {spec.core_versions}, and {__version__} is installed.",
            f"Install a release of {spec.path} made for this core, or a core within these bounds.",
        )
