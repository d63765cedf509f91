"""Routes: names of groups and methods in Python and on the wire, and that no two methods share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.core.checks import CheckMessage

from better_compute.contract import names
from better_compute.contract.methods import MethodSpec
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, shown, titled


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Names match ``names.ROUTE_NAME`` and are not reserved in either form; paths are unique."""
    first: dict[str, tuple[ModuleSpec, MethodSpec]] = {}
    for spec in specs:
        judged: dict[tuple[str, str], bool] = {}
        for method in spec.methods:
            sound = True
            for what, name in (("group", method.group), ("method", method.attribute)):
                place = (what, shown(name))
                if place not in judged:
                    problems = list(_name(spec, what, name, method))
                    judged[place] = not problems
                    yield from problems
                sound = sound and judged[place]
            if sound:
                yield from _unique(spec, method, first)


def _name(spec: ModuleSpec, what: str, name: object, method: MethodSpec) -> Iterator[CheckMessage]:
    title = f"{what} {shown(name)}" + (f" of group {shown(method.group)}" if what == "method" else "")
    if not isinstance(name, str) or not names.matches(names.ROUTE_NAME, name):
        yield error(
            ids.ROUTE_NAME,
            spec,
            f"{title} does not match ^{names.ROUTE_NAME.pattern}$.",
            f"Rename the {what}: a letter, then up to 63 ASCII letters, digits, '_' or '-'.",
        )
        return
    wire = names.camel_case(name)
    if not names.matches(names.ROUTE_NAME, wire):
        yield error(
            ids.ROUTE_NAME,
            spec,
            f"{title} is {wire!r} on the wire, which does not match ^{names.ROUTE_NAME.pattern}$.",
            f"Rename the {what} so that its camelCase form matches too.",
        )
    elif name in names.RESERVED_ROUTE_NAMES or wire in names.RESERVED_ROUTE_NAMES:
        as_wire = "" if wire == name else f" ({wire!r} on the wire)"
        yield error(
            ids.RESERVED_ROUTE,
            spec,
            f"{title}{as_wire} is reserved.",
            f"Rename the {what}; clients cannot carry {', '.join(sorted(names.RESERVED_ROUTE_NAMES))}.",
        )


def _unique(
    spec: ModuleSpec, method: MethodSpec, first: dict[str, tuple[ModuleSpec, MethodSpec]]
) -> Iterator[CheckMessage]:
    owner, other = first.setdefault(method.path, (spec, method))
    if other is not method:
        yield error(
            ids.DUPLICATE_ROUTE,
            spec,
            f"route {method.path!r} of {method.viewset.__name__}.{method.attribute} is also that of "
            f"{other.viewset.__name__}.{other.attribute} in {titled(owner).lower()}.",
            "Rename one of the two methods or its group.",
        )
