"""Hosted order: of migrations, of ``start()`` and of merging node specs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from better_compute.contract.module import ModuleSpec

CORE: Final = "core"

#: The built-in modules in the order in which they build on each other; one that is not installed is simply absent.
BUILT_IN: Final = (
    "node-controllers",
    "site-boot",
    "inventory",
    "capacity",
    "tenancy",
    "quorum",
    "pki",
    "tunnels",
    "audit-sinks",
)


def _rank(spec: ModuleSpec) -> int:
    if spec.plugin_id is not None:
        return len(BUILT_IN) + 2
    if not isinstance(spec.name, str):
        # A rule refuses it; where it stands does not matter.
        return len(BUILT_IN) + 1
    if spec.name == CORE:
        return 0
    if spec.name in BUILT_IN:
        return 1 + BUILT_IN.index(spec.name)
    return len(BUILT_IN) + 1


def hosted_order(specs: Iterable[ModuleSpec]) -> tuple[ModuleSpec, ...]:
    """Sort stably: core, built-ins, the user's modules as they are installed, then plugins likewise."""
    return tuple(sorted(specs, key=_rank))
