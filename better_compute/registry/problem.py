"""A broken registration rule, as the Django check message that every door shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.core.checks import CheckMessage, Error, Warning

from better_compute.contract.module import ModuleSpec

#: Longest representation of an offending value in a message, in characters.
_SHOWN: Final = 120


def shown(value: object) -> str:
    """The offending value as messages show it: its repr on one line, bounded, and never an exception."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} without a repr>"
    text = text.replace("\n", " ")
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def one_of(value: object, allowed: Iterable[str]) -> bool:
    """Whether ``value`` is one of the words allowed; only strings are compared, which cannot raise."""
    return isinstance(value, str) and value in allowed


def titled(spec: ModuleSpec) -> str:
    """How messages name a module."""
    return f"{'Plugin' if spec.plugin_id is not None else 'Module'} {spec.name!r}"


def error(id: str, spec: ModuleSpec, what: str, mend: str) -> CheckMessage:
    """A rule that ``spec`` breaks."""
    return Error(f"{titled(spec)}: {what}", hint=mend, obj=spec.path, id=id)


def warning(id: str, spec: ModuleSpec, what: str, mend: str) -> CheckMessage:
    """Something about ``spec`` that an operator should know, though it can be hosted."""
    return Warning(f"{titled(spec)}: {what}", hint=mend, obj=spec.path, id=id)


def setting_error(id: str, what: str, mend: str) -> CheckMessage:
    """A rule that the host's settings break."""
    return Error(what, hint=mend, obj="settings", id=id)
