"""Makes any declaration safe to judge: what is not of the contract's types is a problem and is left out.

The rules after this one may rely on the types that :class:`ModuleSpec` states, except inside entries of
``extensions``, ``command_kinds``, ``commands``, ``profiles`` and ``status_handlers``, whose own rules
judge them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.core.checks import CheckMessage

from better_compute.contract.methods import Catalog, MethodSpec
from better_compute.contract.module import ModuleSpec
from better_compute.contract.reconcilers import Reconciler
from better_compute.registry import ids
from better_compute.registry.problem import error, shown

SEQUENCES: Final = (
    "requires",
    "migrations",
    "extensions",
    "methods",
    "reconcilers",
    "command_kinds",
    "status_handlers",
    "commands",
    "profiles",
)
#: Fields that hold a function, with what each is called with.
FUNCTIONS: Final = {
    "node_spec": ("ctx", "node"),
    "self_check": ("ctx",),
    "start": ("ctx",),
    "stop": (),
    "tenant_deleted": ("ctx", "tenant_id"),
}

#: What entries of these sequences must be; entries of the others have a rule of their own.
_ENTRIES: Final[dict[str, type[Any]]] = {"methods": MethodSpec, "reconcilers": Reconciler}


def sound(spec: ModuleSpec) -> tuple[ModuleSpec, list[CheckMessage]]:
    """Return ``spec`` with every field of the type it states, and what had to be left out for that."""
    problems: list[CheckMessage] = []
    named = replace(
        spec,
        name=_text(spec.name),
        path=_text(spec.path),
        label=_text(spec.label),
        plugin_id=None if spec.plugin_id is None else _text(spec.plugin_id),
        core_versions=_text(spec.core_versions),
    )
    fields: dict[str, Any] = {name: _sequence(named, name, problems) for name in SEQUENCES}
    fields |= {name: _function(named, name, problems) for name in FUNCTIONS}
    fields["catalog"] = _catalog(named, problems)
    return replace(named, **fields), problems


def _text(value: object) -> str:
    # The brackets keep the stand-in from ever passing for a well-formed name.
    return value if isinstance(value, str) else f"<{shown(value)}>"


def _refuse(problems: list[CheckMessage], spec: ModuleSpec, what: str, mend: str) -> None:
    problems.append(error(ids.DECLARATION, spec, what, mend))


def _entries(spec: ModuleSpec, name: str, value: object, problems: list[CheckMessage]) -> tuple[Any, ...]:
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(value)
    _refuse(
        problems,
        spec,
        f"{name} is {shown(value)}, which is no sequence.",
        f"Write {name} as a list or a tuple, also for a single entry.",
    )
    return ()


def _sequence(spec: ModuleSpec, name: str, problems: list[CheckMessage]) -> tuple[Any, ...]:
    wanted = _ENTRIES.get(name)
    kept = []
    for entry in _entries(spec, name, getattr(spec, name), problems):
        if wanted is None or isinstance(entry, wanted):
            kept.append(entry)
        else:
            _refuse(
                problems,
                spec,
                f"{name} holds {shown(entry)}, which is no {wanted.__name__}.",
                f"Let {name} hold nothing but instances of {wanted.__name__}.",
            )
    return tuple(kept)


def _function(spec: ModuleSpec, name: str, problems: list[CheckMessage]) -> Any:
    value = getattr(spec, name)
    if value is None:
        return None
    what = _misfit(name, value)
    if what is None:
        return value
    _refuse(problems, spec, f"{name} {what}.", f"Define `def {name}({', '.join(FUNCTIONS[name])})`.")
    return None


def _misfit(name: str, value: object) -> str | None:
    """Why the core could not call ``value`` as this field, or None."""
    if not callable(value):
        return f"is {shown(value)}, which is no function"
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        return "is a coroutine, which nobody would await"
    try:
        signature = inspect.signature(value)
    except Exception:
        # What is written in C may keep its signature to itself.
        return None
    try:
        signature.bind(*FUNCTIONS[name])
    except TypeError:
        takes = signature.replace(return_annotation=inspect.Signature.empty)
        return f"takes {takes}, and is called with ({', '.join(FUNCTIONS[name])})"
    return None


def _catalog(spec: ModuleSpec, problems: list[CheckMessage]) -> Catalog:
    catalog: object = spec.catalog
    if not isinstance(catalog, Catalog):
        _refuse(
            problems,
            spec,
            f"catalog is {shown(catalog)}, which is no Catalog.",
            "Write catalog = Catalog(actions=[...], resource_types={...}).",
        )
        return Catalog()
    resource_types: object = catalog.resource_types
    if not isinstance(resource_types, Mapping):
        _refuse(
            problems,
            spec,
            f"catalog.resource_types is {shown(resource_types)}, which is no mapping.",
            'Write resource_types={"widget": ResourceType(resolve=...)}.',
        )
        resource_types = {}
    return Catalog(_entries(spec, "catalog.actions", catalog.actions, problems), dict(resource_types))
