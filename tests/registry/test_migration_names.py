"""Names of migrations, judged on specs."""

from __future__ import annotations

import pytest

from .specs import module, told

PATTERN = "^([a-z][a-z0-9-]{0,63})/(\\d{4})_[a-z0-9][a-z0-9_-]{0,95}$"


@pytest.mark.parametrize(
    "name",
    [
        "gadgets/1_first",
        "gadgets/0001_First",
        "gadgets/0001",
        "gadgets/0001_",
        "gadgets/0001_first\n",
        "gadgets/000\u0661_first",
        "0001_first",
    ],
)
def test_a_migration_name_matches_the_seeds_pattern_whole_and_in_ascii(name: str) -> None:
    assert told(module(migrations=(name,))) == [
        (
            "compute.E010",
            f"Module 'gadgets': migration {name!r} does not match {PATTERN}.",
            "Rename its file to <nnnn>_<slug>.py in lower case, e.g. 0001_widgets.py.",
        )
    ]


def test_a_migration_of_another_owner_is_refused() -> None:
    assert told(module(migrations=("core/0001_first",))) == [
        (
            "compute.E011",
            "Module 'gadgets': migration 'core/0001_first' is owned by 'core'.",
            "Name it gadgets/0001_first: a module ships migrations of its own only.",
        )
    ]


def test_numbers_strictly_increase() -> None:
    assert told(module(migrations=("gadgets/0001_a", "gadgets/0002_b", "gadgets/0002_c"))) == [
        (
            "compute.E012",
            "Module 'gadgets': migration 'gadgets/0002_c' has number 0002, which does not rise above that of "
            "'gadgets/0002_b'.",
            "Give it the next number, 0003; never renumber a shipped one.",
        )
    ]


def test_numbers_may_have_gaps() -> None:
    assert told(module(migrations=("gadgets/0001_a", "gadgets/0007_b"))) == []
