"""A broken registration rule, as the Django check message that every door shows."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from traceback import extract_tb
from typing import Final

from django.core.checks import CheckMessage, Error, Warning

from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids

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


def import_error(spec: ModuleSpec, path: str, failure: Exception) -> CheckMessage:
    """A submodule or a migration of ``spec`` whose import raised, with the file and the line that did."""
    said = " ".join(str(failure.msg if isinstance(failure, SyntaxError) else failure).split())
    return error(
        ids.IMPORT,
        spec,
        f"importing {path} raised {type(failure).__name__}: {said} ({_place(path, failure)}).",
        f"Mend it; `manage.py shell -c '__import__(\"{path}\")'` shows the whole traceback.",
    )


def _place(path: str, failure: Exception) -> str:
    """File and line that raised, the last one that is not the import system's."""
    if isinstance(failure, SyntaxError) and failure.filename:
        return f"{failure.filename}:{failure.lineno}"
    frames = [each for each in extract_tb(failure.__traceback__) if not each.filename.startswith("<frozen")]
    if frames and frames[-1].filename != importlib.__file__:
        return f"{frames[-1].filename}:{frames[-1].lineno}"
    # The file itself could not be read, or is not there.
    return path


def warning(id: str, spec: ModuleSpec, what: str, mend: str) -> CheckMessage:
    """Something about ``spec`` that an operator should know, though it can be hosted."""
    return Warning(f"{titled(spec)}: {what}", hint=mend, obj=spec.path, id=id)


def setting_error(id: str, what: str, mend: str) -> CheckMessage:
    """A rule that the host's settings break."""
    return Error(what, hint=mend, obj="settings", id=id)
