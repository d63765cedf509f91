"""Real Django apps, written to disk for one test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from django.apps import apps
from django.test import override_settings

from better_compute import registry
from better_compute.contract.module import ModuleSpec
from better_compute.registry.reading import Reading, read

_NUMBERS = count(1)

Write = Callable[..., str]


@pytest.fixture
def write_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write an app's files and return its import path; its modules are forgotten afterwards.

    ``write_app({"apps.py": ..., "migrations/0001_first.py": ...})``. In the text of ``apps.py``, ``{path}``
    is the import path.
    """
    monkeypatch.syspath_prepend(str(tmp_path))
    written: list[str] = []

    def write(files: Mapping[str, str]) -> str:
        path = f"written_app_{next(_NUMBERS)}"
        written.append(path)
        root = tmp_path / path
        for name, text in {"__init__.py": "", **files}.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            for folder in file.relative_to(tmp_path).parents:
                if str(folder) != ".":
                    (tmp_path / folder / "__init__.py").touch()
            file.write_text(dedent(text).replace("{path}", path))
        importlib.invalidate_caches()
        return path

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] in written]:
        del sys.modules[name]


@pytest.fixture
def host() -> Iterator[Callable[..., None]]:
    """Install exactly the apps given, in that order, with further settings, for this test."""
    overrides: list[override_settings] = []

    def install(*paths: str, **settings: Any) -> None:
        override = override_settings(INSTALLED_APPS=list(paths), **settings)
        override.enable()
        overrides.append(override)

    yield install
    for override in reversed(overrides):
        override.disable()
    registry.forget()


APPS = """
    from better_compute import ComputeModule

    class Gadgets(ComputeModule):
        name = "{path}"
        label = "{path}"
        module_name = "gadgets"
"""


@pytest.fixture
def read_app(write_app: Write, host: Callable[..., None]) -> Callable[..., Reading]:
    """Write one app, install it and read it; ``apps.py`` declares module ``gadgets`` unless given."""

    def reading(files: Mapping[str, str], **settings: Any) -> Reading:
        path = write_app({"apps.py": APPS, **files})
        host(path, **settings)
        return read(next(config for config in apps.get_app_configs() if config.name == path))  # type: ignore[arg-type]

    return reading


def problems_of(reading: Reading) -> list[tuple[str | None, str, str | None]]:
    """(id, message, hint) of what could not be read."""
    return [(message.id, message.msg, message.hint) for message in reading.problems]


def spec_of(reading: Reading) -> ModuleSpec:
    """The spec of a reading without problems."""
    assert problems_of(reading) == []
    return reading.spec
