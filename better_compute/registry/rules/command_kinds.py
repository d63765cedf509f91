"""Command kinds sent to agents: well formed and unique over all modules, built-in ones included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, get_args

from django.core.checks import CheckMessage
from google.protobuf.message import Message  # type: ignore[import-untyped]

from better_compute.contract import names
from better_compute.contract.command_kinds import AgentRole, CommandKind, Lane
from better_compute.contract.durations import milliseconds
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, one_of, shown, titled

_LANES: Final = get_args(Lane)
_ROLES: Final = get_args(AgentRole)


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Every kind says how it runs, and no two modules declare the same one."""
    first: dict[str, ModuleSpec] = {}
    for spec in specs:
        for kind in spec.command_kinds:
            wrong = _malformed(kind)
            if wrong is not None:
                what, mend = wrong
                yield error(ids.COMMAND_KIND, spec, f"command kind {what}", mend)
                continue
            if kind.kind in first:
                yield error(
                    ids.DUPLICATE_COMMAND_KIND,
                    spec,
                    f"command kind {kind.kind!r} is also declared by {titled(first[kind.kind]).lower()}.",
                    "Name it after your own module, e.g. 'acme.upgrade'.",
                )
            else:
                first[kind.kind] = spec


def _malformed(kind: object) -> tuple[str, str] | None:
    if not isinstance(kind, CommandKind):
        return f"{shown(kind)} is no CommandKind.", "Declare it as CommandKind(kind=..., lane=..., ...)."
    title = shown(kind.kind)
    if not names.matches(names.COMMAND_KIND, kind.kind):
        return f"{title} does not match ^{names.COMMAND_KIND.pattern}$.", "Name it like 'daemon.upgrade'."
    if not one_of(kind.lane, _LANES):
        return f"{title} has lane {shown(kind.lane)}.", f"Choose one of {', '.join(_LANES)}."
    roles: object = kind.roles
    if not isinstance(roles, list | tuple) or not roles or not all(one_of(role, _ROLES) for role in roles):
        return f"{title} has roles {shown(roles)}.", f"List one or both of {', '.join(_ROLES)}."
    try:
        timeout = milliseconds(kind.timeout)
    except ValueError as problem:
        return f"{title} has a malformed timeout: {problem}", "Write it like timeout='15m'."
    if timeout <= 0:
        return f"{title} has timeout {shown(kind.timeout)}, which is not positive.", "Write it like timeout='15m'."
    if not (isinstance(kind.payload, type) and issubclass(kind.payload, Message)):
        return (
            f"{title} has payload {shown(kind.payload)}, which is no protobuf message class.",
            "Give the generated class.",
        )
    return None
