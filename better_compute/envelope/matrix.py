"""The authorization matrix: the method table beside the hosted methods, compared both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from better_compute import registry
from better_compute.contract.methods import MethodSpec, Resource
from better_compute.registry import table

#: Shown where the type of a method's resource depends on its input.
VARIES = "(varies)"


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """One hosted method: who brings it, what it takes to call it, on what it acts."""

    method: str
    module: str
    plugin: bool
    action: str
    kind: str
    resource: str
    #: What to use instead of a method that will go.
    deprecated: str = ""


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """Where the table and the hosted methods part: ``undeclared``, ``missing`` or a field that ``differs``."""

    method: str
    what: Literal["undeclared", "missing", "differs"]
    detail: str


class Matrix(msgspec.Struct, frozen=True, rename="camel"):
    """Every hosted method, and every difference from the table."""

    methods: list[Row]
    differences: list[Difference]


class _Anything:
    """Stands in for an input whose fields do not matter."""

    def __getattr__(self, name: str) -> str:
        return name

    def __getitem__(self, name: object) -> str:
        return str(name)


def matrix() -> Matrix:
    """Read the registry and the table."""
    hosted = [_row(spec) for spec in registry.current().methods.values()]
    return Matrix(methods=hosted, differences=list(_differences(hosted, table.rows())))


def resource_type(spec: MethodSpec) -> str:
    """The type of the resource a method acts on, or :data:`VARIES`."""
    stand_in: Any = _Anything()
    try:
        resource = spec.resource(stand_in)
    except Exception:
        return VARIES
    return resource.type if isinstance(resource, Resource) and isinstance(resource.type, str) else VARIES


def _row(spec: MethodSpec) -> Row:
    return Row(
        method=spec.dotted,
        module=spec.module,
        plugin=spec.plugin_id is not None,
        action=spec.action,
        kind=spec.kind,
        resource=resource_type(spec),
        deprecated=spec.deprecated.use if spec.deprecated else "",
    )


def _differences(hosted: Sequence[Row], declared: Sequence[table.Row]) -> Iterator[Difference]:
    live = {row.method: row for row in hosted if not row.plugin}
    names = {spec.name for spec in registry.current().modules}
    tabled = {row.method: row for row in declared if not row.module or row.module in names}
    for method in sorted(live.keys() - tabled.keys()):
        yield Difference(
            method, "undeclared", f"The module {live[method].module} hosts it, and the table has no row for it."
        )
    for method in sorted(tabled.keys() - live.keys()):
        yield Difference(method, "missing", "The table has a row for it, and no hosted module brings it.")
    for method in sorted(live.keys() & tabled.keys()):
        for field in ("action", "kind", "resource"):
            is_live, is_tabled = getattr(live[method], field), getattr(tabled[method], field)
            if is_live != is_tabled:
                yield Difference(method, "differs", f"Its {field} is {is_live!r}, and {is_tabled!r} in the table.")
