"""A compute module: a Django app whose AppConfig declares what it brings.

Fields are given on the config class, or as a name of the same kind in a submodule found by name (``api``,
``reconcilers``, ``command_kinds``, ``extensions``, ``node_spec``, ``status_handlers``, ``commands``,
``profiles``, ``self_check``, ``lifecycle``, ``tenancy``); the registry reads both into a frozen
:class:`ModuleSpec` and everything else reads specs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from django.apps import AppConfig, apps

from better_compute.contract.command_kinds import CommandKind
from better_compute.contract.commands import CliCommand
from better_compute.contract.contexts import ModuleContext
from better_compute.contract.extensions import Extension
from better_compute.contract.findings import Finding
from better_compute.contract.methods import Catalog, MethodSpec
from better_compute.contract.outcomes import Outcome
from better_compute.contract.reconcilers import Reconciler

#: This module's part of a node's spec, by section; merged in hosted order, later wins.
NodeSpecPart = Mapping[str, Any]


class NodeRecord(Protocol):
    """The node a spec is made for."""

    @property
    def id(self) -> str: ...
    @property
    def tenant_id(self) -> str: ...
    @property
    def pool_id(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class ModuleStatusHandler:
    """Handles a section of a node's report, in the report's transaction.

    One that raises rolls back its own savepoint and becomes a finding.
    """

    section: str
    handle: Callable[[ModuleContext, NodeRecord, Any], None]


@dataclass(frozen=True, slots=True)
class ProfileDocument:
    """A named, versioned document that provision consumes."""

    name: str
    version: str
    document: Mapping[str, Any]


class ComputeModule(AppConfig):
    """Subclass in ``apps.py``; see the module docstring for where each field may stand."""

    default = False

    #: The module's name, which owns migrations and settings; ``AppConfig.name`` is the import path.
    module_name: ClassVar[str] = ""
    #: Names of modules that must be hosted too, in any position.
    requires: ClassVar[Sequence[str]] = ()
    #: Releases of the core that it works with, e.g. ``">=1.2,<2"``; any when empty.
    core_versions: ClassVar[str] = ""
    #: Actions that its methods may name, and resource types they may act on.
    catalog: ClassVar[Catalog] = Catalog()
    #: A msgspec.Struct type that ``COMPUTE[<module_name>]`` is decoded into.
    options: ClassVar[type[Any] | None] = None
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: Any) -> None:
        super().__init__(app_name, app_module)
        #: The label as it was declared, which the registry judges.
        self.declared_label: str = self.label
        taken = apps.app_configs.get(self.label)
        if not apps.apps_ready and isinstance(taken, ComputeModule) and taken.name != app_name:
            # Django would end in a traceback here. Under a label that nobody has, the module reaches the check that
            # refuses the two with their names; nothing migrates, serves or starts until then.
            self.label = f"{self.label}__as_" + app_name.replace(".", "_")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Django takes the one candidate whose `default` is true; the imported base must not be another.
        cls.default = cls.__dict__.get("default", True)

    @classmethod
    def hosted(cls) -> bool:
        """Whether the module is migrated, started and routed here; conditional built-ins override it."""
        return True


class ComputePlugin(ComputeModule):
    """A module with an ``id``: its routes stand under ``plugins.<id>`` and its actions are ``compute:<id>:*``.

    Its Django label is ``plg_<id>``, so its tables are ``plg_<id>_*``.
    """

    default = False
    #: Names its routes, actions and tables; it cannot change once the plugin has shipped.
    id: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.id:
            if "module_name" not in cls.__dict__:
                cls.module_name = cls.id
            if "label" not in cls.__dict__:
                # Any id gives a label that Django takes, so that a malformed one is reported by its check.
                cls.label = "plg_" + re.sub(r"\W", "_", str(cls.id), flags=re.ASCII)


@dataclass(frozen=True, slots=True)
class ModuleSpec:
    """A module as the registry froze it. Empty fields mean the module does not bring that part."""

    name: str
    #: Import path of the Django app, for messages.
    path: str
    label: str
    plugin_id: str | None = None
    requires: tuple[str, ...] = ()
    #: Bounds of the core's version, such as ``>=1.2,<2``; empty when any will do.
    core_versions: str = ""
    #: Ledger names ``<owner>/<nnnn>_<slug>`` in number order.
    migrations: tuple[str, ...] = ()
    extensions: tuple[Extension, ...] = ()
    methods: tuple[MethodSpec, ...] = ()
    reconcilers: tuple[Reconciler, ...] = ()
    command_kinds: tuple[CommandKind, ...] = ()
    node_spec: Callable[[ModuleContext, NodeRecord], NodeSpecPart] | None = None
    status_handlers: tuple[ModuleStatusHandler, ...] = ()
    catalog: Catalog = field(default_factory=Catalog)
    commands: tuple[CliCommand, ...] = ()
    profiles: tuple[ProfileDocument, ...] = ()
    self_check: Callable[[ModuleContext], Iterable[Finding]] | None = None
    start: Callable[[ModuleContext], None] | None = None
    stop: Callable[[], None] | None = None
    tenant_deleted: Callable[[ModuleContext, str], Outcome] | None = None
    #: Decoded options, an instance of the config's ``options`` type, or None.
    options: Any = None
