"""Which modules this process hosts: collected from the installed apps, checked, sorted and frozen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, Final

from django.apps import apps
from django.core.checks import ERROR, CheckMessage
from django.core.signals import setting_changed

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.extensions import Extension, built_by_helper
from better_compute.contract.module import ComputeModule, ModuleSpec
from better_compute.registry.checking import problems_of
from better_compute.registry.hosted import Registry, freeze
from better_compute.registry.order import hosted_order
from better_compute.registry.reading import Reading, extensions_of, read_if_hosted
from better_compute.registry.settings_extensions import given

__all__ = ["Registry", "current", "forget", "listed_extensions", "override", "problems"]

_LOCK: Final = RLock()
_built: Registry | None = None
_overridden: tuple[ModuleSpec, ...] | None = None
_forgotten = 0


def current() -> Registry:
    """The registry of this process, built on first use.

    Raises
    ------
    ComputeError
        INVALID_CONFIG listing every rule that is broken, of every module.
    """
    global _built
    with _LOCK:
        if _built is None:
            readings = _readings()
            _refuse(problems_of(readings))
            _built = freeze([reading.spec for reading in readings], [each.value for each in given()])
        return _built


def problems() -> list[CheckMessage]:
    """Every registration rule that the installed modules break; empty when they can be hosted."""
    return problems_of(_readings())


def forget() -> None:
    """Build the registry anew on next use; for tests and for settings that changed."""
    global _built, _forgotten
    with _LOCK:
        _built = None
        _forgotten += 1


@contextmanager
def override(*specs: ModuleSpec) -> Iterator[None]:
    """Host exactly ``specs`` meanwhile, in every thread of this process; for tests."""
    global _built, _overridden
    with _LOCK:
        before, forgotten = (_overridden, _built), _forgotten
        _overridden, _built = specs, None
    try:
        yield
    finally:
        with _LOCK:
            _overridden, _built = before
            if _forgotten != forgotten:
                # What changed meanwhile may have been read into the registry of before, too.
                _built = None


def listed_extensions() -> list[Extension]:
    """Every extension that the settings and the installed apps list, hosted or not.

    For ``hosted()`` of conditional modules, which cannot ask :func:`current`: it is not built yet.
    """
    read_here = [extension for config in _configs() for extension in extensions_of(config)]
    return [value for value in [*(each.value for each in given()), *read_here] if built_by_helper(value)]


def _configs() -> list[ComputeModule]:
    return [config for config in apps.get_app_configs() if isinstance(config, ComputeModule)]


def _readings() -> list[Reading]:
    if _overridden is not None:
        return [Reading(spec) for spec in hosted_order(_overridden)]
    readings = {id(each.spec): each for each in map(read_if_hosted, _configs()) if each is not None}
    return [readings[id(spec)] for spec in hosted_order(each.spec for each in readings.values())]


def _refuse(messages: list[CheckMessage]) -> None:
    broken = [message for message in messages if message.level >= ERROR]
    if broken:
        listed = " ".join(f"({message.id}) {message.msg} {message.hint or ''}".rstrip() for message in broken)
        raise ComputeError(ErrorCode.INVALID_CONFIG, listed, mend="`manage.py check` lists the same.")


def _settings_changed(*, setting: str, **_: Any) -> None:
    if setting in {"COMPUTE", "INSTALLED_APPS", "MIGRATION_MODULES"}:
        forget()


setting_changed.connect(_settings_changed, dispatch_uid="better_compute.registry")
