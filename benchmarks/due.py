"""Which figures are due (``figures.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

FIGURES = Path(__file__).with_name("figures.toml")


def groups(path: Path = FIGURES) -> dict[str, dict[str, bool]]:
    """By group: each figure's name, and whether only ``FULL=1`` measures it.

    Raises
    ------
    ValueError
        When a figure's name does not begin with its group.
    """
    listed: dict[str, dict[str, bool]] = {}
    for group, figures in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for name in figures:
            if not name.startswith(f"{group}: "):
                raise ValueError(f"{path.name}: figure {name!r} must begin with '{group}: '.")
        listed[group] = {name: bool(entry.get("long", False)) for name, entry in figures.items()}
    return listed


def figures(group: str, *, full: bool, path: Path = FIGURES) -> Sequence[str]:
    """The figures of ``group`` that this run must measure."""
    return [name for name, long in groups(path)[group].items() if full or not long]
