"""The authorization matrix: the method table beside the hosted methods, compared both ways."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

import msgspec

from better_compute import registry
from better_compute.contract.methods import MethodSpec, Resource
from better_compute.contract.principals import RoleMatrix
from better_compute.engine.contexts import served_port
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
    #: role -> how the call's tenant stands to the one of the role -> ``allowed`` or the code of the refusal.
    #: Empty where no hosted module judges by roles.
    roles: dict[str, dict[str, str]] = {}


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """Where the table and the hosted methods part: ``undeclared``, ``missing`` or a field that ``differs``.

    ``leaks`` is a role that may do it in a tenant beside or above its own, ``unreachable`` what no owner may.
    """

    method: str
    what: Literal["undeclared", "missing", "differs", "leaks", "unreachable"]
    detail: str


class Matrix(msgspec.Struct, frozen=True, rename="camel"):
    """Every hosted method, and every difference from the table. ``relations`` are the columns of each role."""

    methods: list[Row]
    relations: list[str]
    differences: list[Difference]


class _Anything:
    """Stands in for an input whose fields do not matter; those in ``without`` are null."""

    def __init__(self, without: Collection[str] = ()) -> None:
        self._without = without

    def __getattr__(self, name: str) -> str | None:
        return None if name in self._without else name

    def __getitem__(self, name: object) -> str:
        return str(name)


def matrix() -> Matrix:
    """Read the registry and the table, and ask the port ``role-matrix`` about every method."""
    judge: RoleMatrix | None = served_port("role-matrix")
    hosted = [_row(spec, judge) for spec in registry.current().methods.values()]
    return Matrix(
        methods=hosted,
        relations=[] if judge is None else list(judge.relations()),
        differences=[*_differences(hosted, table.rows()), *_unsafe(hosted)],
    )


def resource_type(spec: MethodSpec) -> str:
    """The type of the resource a method acts on, or :data:`VARIES`."""
    for stand_in in _stand_ins(spec):
        try:
            resource = spec.resource(stand_in)
        except Exception:  # noqa: S112 - it may want one of two fields and refuse both
            continue
        return resource.type if isinstance(resource, Resource) and isinstance(resource.type, str) else VARIES
    return VARIES


def _stand_ins(spec: MethodSpec) -> Iterator[Any]:
    """With every field; then with one optional field at a time, for inputs of which exactly one is wanted."""
    yield _Anything()
    optional = [field.name for field in msgspec.structs.fields(spec.input_type) if not field.required]
    for name in optional:
        yield _Anything([other for other in optional if other != name])


def _row(spec: MethodSpec, judge: RoleMatrix | None) -> Row:
    type = resource_type(spec)
    return Row(
        method=spec.dotted,
        module=spec.module,
        plugin=spec.plugin_id is not None,
        action=spec.action,
        kind=spec.kind,
        resource=type,
        deprecated=spec.deprecated.use if spec.deprecated else "",
        roles={}
        if judge is None
        else {
            role: {
                relation: judge.outcome(role, spec.action, relation, installation=type == "system")
                for relation in judge.relations()
            }
            for role in judge.roles()
        },
    )


def _unsafe(hosted: Sequence[Row]) -> Iterator[Difference]:
    """What no table can make right: a role that reaches up or aside, and a method that is nobody's."""
    for row in hosted:
        for role, outcomes in row.roles.items():
            for relation, outcome in outcomes.items():
                if outcome == "allowed" and relation not in ("own", "below"):
                    yield Difference(row.method, "leaks", f"The role {role} may do it in a {relation} tenant.")
        if row.roles and not any(outcomes.get("own") == "allowed" for outcomes in row.roles.values()):
            yield Difference(row.method, "unreachable", f"No role holds {row.action} in its own tenant.")


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
