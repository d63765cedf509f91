"""The merged catalog: actions, resource types, and that methods name only actions it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from django.core.checks import CheckMessage

from better_compute.contract import names
from better_compute.contract.methods import ResourceType
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, shown, titled

#: Resource types that need no declaration and bear none.
BUILT_IN_TYPES: Final = frozenset({"tenant", "system"})


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Judge every module's catalog, then every method's action against the merged one."""
    yield from _actions(specs)
    yield from _resource_types(specs)
    yield from _methods(specs)


def _actions(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        for action in spec.catalog.actions:
            match = names.ACTION.fullmatch(action) if isinstance(action, str) else None
            if match is None:
                yield error(
                    ids.ACTION,
                    spec,
                    f"action {shown(action)} does not match ^{names.ACTION.pattern}$.",
                    f"Write it as compute:<area>:<verb>, e.g. 'compute:{spec.plugin_id or 'widgets'}:read'.",
                )
                continue
            if spec.plugin_id is not None and match[1] != spec.plugin_id:
                yield error(
                    ids.PLUGIN_ACTION,
                    spec,
                    f"action {action!r} is not in the plugin's own area.",
                    f"A plugin's actions are compute:{spec.plugin_id}:<verb>.",
                )
            if action in first:
                yield error(
                    ids.DUPLICATE_CATALOG,
                    spec,
                    f"action {action!r} is also declared by {titled(first[action]).lower()}.",
                    "Declare it once; methods of every module may name it.",
                )
            else:
                first[action] = spec


def _resource_types(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        for name, kind in spec.catalog.resource_types.items():
            wrong = _malformed_type(name, kind)
            if wrong is not None:
                what, mend = wrong
                yield error(ids.RESOURCE_TYPE, spec, f"resource type {shown(name)} {what}", mend)
            elif name in first:
                yield error(
                    ids.DUPLICATE_CATALOG,
                    spec,
                    f"resource type {name!r} is also declared by {titled(first[name]).lower()}.",
                    "Declare it once, in the module that owns the records.",
                )
            else:
                first[name] = spec


def _malformed_type(name: object, kind: object) -> tuple[str, str] | None:
    if not names.matches(names.RESOURCE_TYPE, name):
        return f"does not match ^{names.RESOURCE_TYPE.pattern}$.", "Give it a name such as 'widget'."
    if name in BUILT_IN_TYPES:
        return "is built in.", "Remove it from the catalog and use it as it is."
    if not isinstance(kind, ResourceType):
        return f"is {shown(kind)}, which is no ResourceType.", "Write ResourceType(resolve=...)."
    if not callable(kind.resolve):
        return f"has resolve={shown(kind.resolve)}, which is no function.", "Write `def resolve(sql, id): ...`."
    return None


def _methods(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    merged = {action for spec in specs for action in spec.catalog.actions if isinstance(action, str)}
    for spec in specs:
        for method in spec.methods:
            if not isinstance(method.action, str) or method.action not in merged:
                yield error(
                    ids.METHOD_ACTION,
                    spec,
                    f"method {shown(method.attribute)} of group {shown(method.group)} names action "
                    f"{shown(method.action)}, which no hosted module's catalog holds.",
                    "Add the action to this module's catalog, or correct it in compute_method().",
                )
