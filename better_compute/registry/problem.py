"""A broken registration rule, as the Django check message that every door shows."""

from __future__ import annotations

from django.core.checks import CheckMessage, Error, Warning

from better_compute.contract.module import ModuleSpec


def titled(spec: ModuleSpec) -> str:
    """How messages name a module."""
    return f"{'Plugin' if spec.plugin_id is not None else 'Module'} {spec.name!r}"


def error(id: str, spec: ModuleSpec, what: str, mend: str) -> CheckMessage:
    """A rule that ``spec`` breaks; ``what`` continues the sentence that its name begins."""
    return Error(f"{titled(spec)}{what}", hint=mend, obj=spec.path, id=id)


def warning(id: str, spec: ModuleSpec, what: str, mend: str) -> CheckMessage:
    """Something that hosts all the same but that an operator should know."""
    return Warning(f"{titled(spec)}{what}", hint=mend, obj=spec.path, id=id)
