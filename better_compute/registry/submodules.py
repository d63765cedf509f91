"""Submodules found by name: looked for first and then imported, so that a broken import is never taken for none."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from django.apps import AppConfig
from django.utils.module_loading import module_has_submodule

_Class = TypeVar("_Class")


def find(config: AppConfig, name: str) -> ModuleType | None:
    """Import ``<app>.<name>``, or return None when the app has no such submodule.

    Whatever the import raises goes through.
    """
    package: Any = config.module
    if not module_has_submodule(package, name):
        return None
    return import_module(f"{config.name}.{name}")


def classes(module: ModuleType, base: type[_Class]) -> list[type[_Class]]:
    """The subclasses of ``base`` that ``module``, or a submodule of it, defines, in order of definition."""
    inside = f"{module.__name__}."
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, base)
        and (value.__module__ == module.__name__ or value.__module__.startswith(inside))
    ]
    return list(dict.fromkeys(found))
