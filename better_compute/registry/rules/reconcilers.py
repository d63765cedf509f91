"""Reconcilers: names, where they run, and their periodic keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, get_args

from django.core.checks import CheckMessage

from better_compute.contract import names
from better_compute.contract.durations import milliseconds
from better_compute.contract.module import ModuleSpec
from better_compute.contract.reconcilers import Periodic, Reconciler, Role, ShardBy
from better_compute.registry import ids
from better_compute.registry.order import CORE
from better_compute.registry.problem import error, one_of, shown, titled

_SHARD_BY: Final = get_args(ShardBy)
_ROLES: Final = get_args(Role)
#: Shortest ``every`` of a periodic key, in milliseconds.
SHORTEST_EVERY_MS: Final = 1_000
#: Longest, in milliseconds: ten years, far inside what the store can add to a timestamp.
LONGEST_EVERY_MS: Final = 10 * 365 * 86_400_000


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Judge every reconciler of every module."""
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        for reconciler in spec.reconcilers:
            yield from _name(spec, reconciler, first)
            yield from _place(spec, reconciler)
            yield from _periodic(spec, reconciler)


def _titled(reconciler: Reconciler) -> str:
    name = getattr(reconciler, "name", None)
    return type(reconciler).__name__ if name is None else shown(name)


def _name(spec: ModuleSpec, reconciler: Reconciler, first: dict[str, ModuleSpec]) -> Iterator[CheckMessage]:
    name = getattr(reconciler, "name", None)
    if not names.matches(names.RECONCILER_NAME, name):
        yield error(
            ids.RECONCILER_NAME,
            spec,
            f"reconciler {type(reconciler).__name__} has name {shown(name)}, which does not match "
            f"^{names.RECONCILER_NAME.pattern}$.",
            "Set `name` on the class, e.g. 'acme.widgets'.",
        )
        return
    assert isinstance(name, str)  # noqa: S101 - narrows the type that `matches` established
    if name in names.RESERVED_RECONCILERS and spec.name != CORE:
        yield error(
            ids.RESERVED_RECONCILER,
            spec,
            f"reconciler name {name!r} is reserved for the runtime.",
            "Name it after your own module, e.g. 'acme.widgets'.",
        )
    if name in first:
        yield error(
            ids.DUPLICATE_RECONCILER,
            spec,
            f"reconciler name {name!r} of {type(reconciler).__name__} is also declared by "
            f"{titled(first[name]).lower()}.",
            "Give one of the two another name; a name is also a work kind.",
        )
    else:
        first[name] = spec


def _place(spec: ModuleSpec, reconciler: Reconciler) -> Iterator[CheckMessage]:
    for field, allowed in (("shard_by", _SHARD_BY), ("role", _ROLES)):
        value = getattr(reconciler, field, None)
        if not one_of(value, allowed):
            yield error(
                ids.RECONCILER_PLACE,
                spec,
                f"reconciler {_titled(reconciler)} has {field} = {shown(value)}.",
                f"Choose one of {', '.join(repr(each) for each in allowed)}.",
            )


def _periodic(spec: ModuleSpec, reconciler: Reconciler) -> Iterator[CheckMessage]:
    declared: object = getattr(reconciler, "periodic", ())
    if not isinstance(declared, list | tuple):
        yield error(
            ids.PERIODIC,
            spec,
            f"reconciler {_titled(reconciler)} has periodic = {shown(declared)}, which is no sequence.",
            "Write periodic = (Periodic('sweep', every='10m'),).",
        )
        return
    seen: set[str] = set()
    for entry in declared:
        wrong = _malformed(entry, seen)
        if wrong is not None:
            what, mend = wrong
            yield error(ids.PERIODIC, spec, f"reconciler {_titled(reconciler)} has a periodic {what}", mend)


def _malformed(entry: object, seen: set[str]) -> tuple[str, str] | None:
    if not isinstance(entry, Periodic):
        return f"entry {shown(entry)} that is no Periodic.", "Write Periodic('sweep', every='10m')."
    problem = names.key_problem(entry.key)
    if problem is not None:
        return f"key {shown(entry.key)} that {problem}.", f"Use 1 to {names.MAX_KEY_LENGTH} characters."
    if entry.key in seen:
        return f"key {shown(entry.key)} twice.", "Keep one of the two; a key comes back at one pace."
    seen.add(entry.key)
    try:
        every = milliseconds(entry.every)
    except ValueError as malformed:
        return f"key {shown(entry.key)} whose every is malformed: {malformed}", "Write it like every='10m'."
    if every < SHORTEST_EVERY_MS:
        return f"key {shown(entry.key)} every {shown(entry.every)}, under 1 s.", "Let it come back every 1s or slower."
    if every > LONGEST_EVERY_MS:
        return f"key {shown(entry.key)} every {shown(entry.every)}, over ten years.", "Let it come back sooner."
    return None
