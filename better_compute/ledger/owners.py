"""Who owns a migration: the hosted module behind a Django label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata

from better_compute import registry

#: What the ledger says when a module's package carries no version.
NO_VERSION = "unversioned"


@dataclass(frozen=True, slots=True)
class Owner:
    """A hosted module as the ledger knows it. ``position`` is its place in the hosted order."""

    name: str
    label: str
    position: int
    version: str

    def ledger_name(self, migration: str) -> str:
        """``<owner>/<nnnn>_<slug>`` of the Django migration called ``migration``."""
        return f"{self.name}/{migration}"


def hosted() -> dict[str, Owner]:
    """Every hosted module by Django label, in hosted order.

    Raises
    ------
    ComputeError
        INVALID_CONFIG when the registry refuses the installed modules.
    """
    return {
        spec.label: Owner(spec.name, spec.label, position, version_of(spec.path))
        for position, spec in enumerate(registry.current().modules)
    }


@cache
def version_of(path: str) -> str:
    """The version of the package that ships the app at ``path``: its ``__version__``, or its distribution's."""
    parts = path.split(".")
    for depth in range(len(parts), 0, -1):
        version = getattr(import_module(".".join(parts[:depth])), "__version__", None)
        if isinstance(version, str):
            return version
    try:
        return metadata.version(parts[0])
    except metadata.PackageNotFoundError:
        return NO_VERSION
