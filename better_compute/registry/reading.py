"""Reads a module's AppConfig and its submodules into a :class:`ModuleSpec`.

A field stands on the config class or in the submodule of its name, never in both. What cannot be read, a
submodule whose import raises included, is a problem and reads as absent; a problem keeps the registry from being built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import isabstract
from types import ModuleType
from typing import Any, Final

import msgspec
from django.core.checks import CheckMessage

from better_compute import conf
from better_compute.contract.errors import ComputeError
from better_compute.contract.methods import Catalog, MethodGroup
from better_compute.contract.module import ComputeModule, ComputePlugin, ModuleSpec
from better_compute.contract.reconcilers import Reconciler
from better_compute.registry import ids, methods, migrations, submodules
from better_compute.registry.problem import error, import_error, shown
from better_compute.registry.shape import sound

#: Fields that hold a sequence, under the same name on the config, on the spec and in their submodule.
SEQUENCES: Final = ("command_kinds", "extensions", "status_handlers", "commands", "profiles")

#: Fields that hold a function, with the submodule each stands in.
FUNCTIONS: Final = {
    "node_spec": "node_spec",
    "self_check": "self_check",
    "start": "lifecycle",
    "stop": "lifecycle",
    "tenant_deleted": "tenancy",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A module as it was read, and what could not be."""

    spec: ModuleSpec
    problems: tuple[CheckMessage, ...] = ()


def read(config: ComputeModule) -> Reading:
    """Read everything ``config`` declares."""
    return _Reader(config).read()


def read_if_hosted(config: ComputeModule) -> Reading | None:
    """Read ``config``, or return None when its own condition keeps it from being hosted."""
    try:
        hosted = config.hosted()
    except ComputeError:
        # The settings it asked cannot be read, which the rule on settings reports.
        return None
    except Exception as failure:
        reader = _Reader(config)
        reader.refuse(
            ids.DECLARATION,
            f"hosted() raised {shown(failure)}.",
            "Let hosted() return whether the module is hosted, from the settings alone.",
        )
        return Reading(reader.spec, tuple(reader.problems))
    return read(config) if hosted else None


def extensions_of(config: ComputeModule) -> tuple[Any, ...]:
    """The extensions that ``config`` lists, without reading the rest of it."""
    return _Reader(config).sequence("extensions")


class _Reader:
    def __init__(self, config: ComputeModule) -> None:
        self.config = config
        self.problems: list[CheckMessage] = []
        self._submodules: dict[str, ModuleType | None] = {}
        # Its names are what messages and settings are told apart by, so they are made sound first.
        self.spec, _ = sound(
            ModuleSpec(
                name=config.module_name,
                path=config.name,
                label=config.declared_label,
                plugin_id=config.id if isinstance(config, ComputePlugin) else None,
                core_versions=config.core_versions,
            )
        )

    def read(self) -> Reading:
        fields: dict[str, Any] = {name: self.sequence(name) for name in SEQUENCES}
        fields |= {name: self._function(name, place) for name, place in FUNCTIONS.items()}
        fields |= {
            "requires": self._tuple("requires", self.config.requires),
            "catalog": self._catalog(),
            "methods": self._methods(),
            "reconcilers": self._reconcilers(),
            "migrations": self._migrations(),
            "options": self._options(),
        }
        return Reading(replace(self.spec, **fields), tuple(self.problems))

    def _submodule(self, name: str) -> ModuleType | None:
        """The submodule of this name; one whose import raises is a problem, named once, and reads as absent."""
        if name not in self._submodules:
            try:
                self._submodules[name] = submodules.find(self.config, name)
            except Exception as failure:
                self._submodules[name] = None
                self.problems.append(import_error(self.spec, f"{self.config.name}.{name}", failure))
        return self._submodules[name]

    def refuse(self, id: str, what: str, mend: str) -> None:
        self.problems.append(error(id, self.spec, what, mend))

    def _tuple(self, name: str, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            self.refuse(
                ids.DECLARATION,
                f"{name} is {shown(value)}, which is no sequence.",
                f"Write {name} as a list or a tuple, also for a single entry.",
            )
            return ()
        return tuple(value)

    def _declared(self, name: str, place: str) -> Any:
        """The value of a field, None when it stands nowhere."""
        on_config = getattr(self.config, name, None)
        submodule = self._submodule(place)
        in_submodule = getattr(submodule, name, None) if submodule is not None else None
        if on_config is not None and in_submodule is not None:
            self.refuse(
                ids.DECLARATION,
                f"{name} stands both on the config class and in {submodule.__name__}.",  # type: ignore[union-attr]
                "Keep one of the two.",
            )
        return on_config if on_config is not None else in_submodule

    def sequence(self, name: str) -> tuple[Any, ...]:
        value = self._declared(name, name)
        submodule = self._submodule(name)
        if value is None and submodule is not None:
            self.refuse(
                ids.DECLARATION,
                f"{submodule.__name__} defines no {name}.",
                f"Define `{name} = [...]` in it, or remove the submodule.",
            )
        return () if value is None else self._tuple(name, value)

    def _function(self, name: str, place: str) -> Callable[..., Any] | None:
        value = self._declared(name, place)
        if value is None:
            self._miss(name, place)
            return None
        if not callable(value):
            self.refuse(
                ids.DECLARATION, f"{name} is {shown(value)}, which is no function.", f"Define `def {name}(...)`."
            )
            return None
        return value  # type: ignore[no-any-return]

    def _miss(self, name: str, place: str) -> None:
        submodule = self._submodule(place)
        wanted = [field for field, where in FUNCTIONS.items() if where == place]
        if submodule is None or name != wanted[0]:
            return
        if not any(hasattr(submodule, field) for field in wanted):
            self.refuse(
                ids.DECLARATION,
                f"{submodule.__name__} defines no {' or '.join(wanted)}.",
                f"Define `def {wanted[0]}(...)` in it, or remove the submodule.",
            )

    def _catalog(self) -> Catalog:
        if isinstance(self.config.catalog, Catalog):
            return self.config.catalog
        self.refuse(
            ids.DECLARATION,
            f"catalog is {shown(self.config.catalog)}, which is no Catalog.",
            "Write catalog = Catalog(actions=[...], resource_types={...}).",
        )
        return Catalog()

    def _methods(self) -> tuple[Any, ...]:
        groups = self._classes("api", MethodGroup)
        found, problems = methods.read(self.spec, groups)
        self.problems += problems
        return found

    def _reconcilers(self) -> tuple[Reconciler, ...]:
        found = []
        for each in self._classes("reconcilers", Reconciler):
            if isabstract(each):
                if "name" in vars(each):
                    missing = ", ".join(sorted(each.__abstractmethods__))
                    self.refuse(
                        ids.DECLARATION,
                        f"reconciler {each.__name__} has a name but no {missing}.",
                        f"Define {missing}, or leave name to the classes that derive from it.",
                    )
                continue
            try:
                found.append(each())
            except Exception as failure:
                self.refuse(
                    ids.DECLARATION,
                    f"reconciler {each.__name__} cannot be constructed: {shown(failure)}.",
                    "Give it an __init__ without arguments, or none at all.",
                )
        return tuple(found)

    def _classes(self, name: str, base: type[Any]) -> list[type[Any]]:
        on_config = getattr(self.config, name, None)
        submodule = self._submodule(name)
        if on_config is None:
            return [] if submodule is None else submodules.classes(submodule, base)
        found = []
        for each in self._tuple(name, on_config):
            if isinstance(each, type) and issubclass(each, base):
                found.append(each)
            else:
                self.refuse(
                    ids.DECLARATION,
                    f"{name} holds {shown(each)}, which is no subclass of {base.__name__}.",
                    f"List classes, or define them in {self.config.name}.{name}.",
                )
        return found

    def _migrations(self) -> tuple[str, ...]:
        found, problems = migrations.read(self.spec, self.config)
        self.problems += problems
        return tuple(f"{self.spec.name}/{name}" for name in found)

    def _options(self) -> Any:
        """Decode ``COMPUTE[<name>]``; the rule on settings reports one that is no dictionary."""
        declared: object = self.config.options
        try:
            given = conf.raw().get(self.spec.name)
        except ComputeError:
            return None
        if declared is None:
            if given is not None:
                self.refuse(
                    ids.SETTINGS,
                    f"COMPUTE[{self.spec.name!r}] is set, but the module declares no options.",
                    "Remove it from the settings.",
                )
            return None
        if not (isinstance(declared, type) and issubclass(declared, msgspec.Struct)):
            self.refuse(
                ids.DECLARATION,
                f"options is {shown(declared)}, which is no msgspec.Struct type.",
                "Write options = MyOptions, a msgspec.Struct with a default for every field.",
            )
            return None
        if given is not None and not isinstance(given, Mapping):
            return None
        try:
            return msgspec.convert(dict(given or {}), declared)
        except msgspec.ValidationError as failure:
            self.refuse(
                ids.SETTINGS,
                f"COMPUTE[{self.spec.name!r}] in the settings: {failure}.",
                "Correct the key that the path names.",
            )
            return None
