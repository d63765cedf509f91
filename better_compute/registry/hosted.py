"""The frozen registry: which modules this process hosts and what they bring."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import better_compute
from better_compute.contract.command_kinds import CommandKind
from better_compute.contract.commands import CliCommand
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.extensions import Extension
from better_compute.contract.methods import MethodSpec, ResourceType
from better_compute.contract.module import ModuleSpec, ProfileDocument
from better_compute.contract.reconcilers import Reconciler


@dataclass(frozen=True, slots=True)
class Registry:
    """Everything the hosted modules declared, in hosted order and by name.

    Mappings are read-only and iterate in hosted order.
    """

    modules: tuple[ModuleSpec, ...]
    #: By path below ``/api/compute/``.
    methods: Mapping[str, MethodSpec]
    #: By name, which is also the work kind.
    reconcilers: Mapping[str, Reconciler]
    reconciler_owner: Mapping[str, ModuleSpec]
    command_kinds: Mapping[str, CommandKind]
    #: By ``kind:id@version``; those of the settings come first.
    extensions: Mapping[str, Extension]
    #: The merged catalog's actions.
    actions: frozenset[str]
    #: The merged catalog's resource types; ``tenant`` and ``system`` are built in and not listed.
    resource_types: Mapping[str, ResourceType]
    #: By ``<module>:<command>``.
    commands: Mapping[str, CliCommand]
    #: By ``<name>@<version>``.
    profiles: Mapping[str, ProfileDocument]
    #: SHA-256 (hex) over what is hosted; processes of one installation must agree on it.
    fingerprint: str

    def module(self, name: str) -> ModuleSpec:
        """The hosted module called ``name``.

        Raises
        ------
        ComputeError
            NOT_FOUND naming the modules that are hosted.
        """
        for spec in self.modules:
            if spec.name == name:
                return spec
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"No hosted module is named {name!r}.",
            mend=f"Hosted are: {', '.join(spec.name for spec in self.modules)}.",
        )


def freeze(modules: Sequence[ModuleSpec], settings_extensions: Sequence[Extension] = ()) -> Registry:
    """Build the registry from ``modules``, which stand in hosted order and break no rule."""
    contributed = [*settings_extensions, *(extension for spec in modules for extension in spec.extensions)]
    return Registry(
        modules=tuple(modules),
        methods=MappingProxyType({method.path: method for spec in modules for method in spec.methods}),
        reconcilers=MappingProxyType({each.name: each for spec in modules for each in spec.reconcilers}),
        reconciler_owner=MappingProxyType({each.name: spec for spec in modules for each in spec.reconcilers}),
        command_kinds=MappingProxyType({each.kind: each for spec in modules for each in spec.command_kinds}),
        extensions=MappingProxyType({extension.key: extension for extension in contributed}),
        actions=frozenset(action for spec in modules for action in spec.catalog.actions),
        resource_types=MappingProxyType(
            {name: kind for spec in modules for name, kind in spec.catalog.resource_types.items()}
        ),
        commands=MappingProxyType(
            {f"{spec.name}:{command.name}": command for spec in modules for command in spec.commands}
        ),
        profiles=MappingProxyType({f"{each.name}@{each.version}": each for spec in modules for each in spec.profiles}),
        fingerprint=fingerprint(modules),
    )


def fingerprint(modules: Sequence[ModuleSpec]) -> str:
    """SHA-256 (hex) over version, names in order, migrations, methods and reconcilers."""
    facts = {
        "version": better_compute.__version__,
        "modules": [
            {
                "name": spec.name,
                "migrations": spec.migrations,
                "methods": [[method.path, method.action, method.kind] for method in spec.methods],
                "reconcilers": [[each.name, each.shard_by, each.role] for each in spec.reconcilers],
            }
            for spec in modules
        ],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
