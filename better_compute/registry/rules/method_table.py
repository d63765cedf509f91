"""Methods of the core and of modules that are no plugins, against the method table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.core.checks import CheckMessage

from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids, table
from better_compute.registry.problem import warning


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """A method without a row is undeclared: it is hosted all the same."""
    declared = {row.method for row in table.rows()}
    for spec in specs:
        if spec.plugin_id is not None:
            continue
        for method in spec.methods:
            if isinstance(method.group, str) and method.dotted not in declared:
                yield warning(
                    ids.UNDECLARED,
                    spec,
                    f"method {method.dotted} has no row in the method table.",
                    "Ship third-party code as a plugin; a built-in method needs a row in contract/methods.toml.",
                )
