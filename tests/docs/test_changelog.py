"""The changelog tells of every built-in method that will go or is gone, and of none that is neither."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from better_compute import registry
from better_compute.contract.methods import Deprecation

from .snippets import DOCS

CHANGELOG = DOCS.parent / "CHANGELOG.md"
#: What callers have at least between the deprecation of a built-in method and its end.
NOTICE = timedelta(days=90)

Methods = dict[str, Deprecation | None]


def entries(text: str, heading: str) -> dict[str, str]:
    """The lines below every ``### heading``, by the method that each begins with in backticks."""
    found = {}
    for section in re.findall(rf"^### {heading}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL):
        for entry in re.split(r"^- ", section, flags=re.MULTILINE)[1:]:
            match = re.match(r"`([A-Za-z][\w-]*(?:\.[\w-]+)+)`", entry)
            if match:
                found[match[1]] = " ".join(entry.split())
    return found


def disagreements(text: str, methods: Methods) -> list[str]:
    """What the changelog and the methods that are hosted do not agree on."""
    deprecated, removed = entries(text, "Deprecated"), entries(text, "Removed")
    told = []
    for name, going in methods.items():
        if going is None:
            continue
        entry = deprecated.get(name, "")
        if going.use not in entry or (going.sunset is not None and str(going.sunset) not in entry):
            told.append(f"{name} is deprecated; write a line under Deprecated with {going.use} and {going.sunset}.")
        if going.sunset is not None and going.sunset < going.since + NOTICE:
            told.append(f"{name} may be gone before {NOTICE.days} days have passed.")
    told += [f"{name} is no longer deprecated." for name in deprecated if name in methods and methods[name] is None]
    told += [f"{name} is gone; write a line under Removed." for name in deprecated if name not in {*methods, *removed}]
    told += [f"{name} is not gone." for name in removed if name in methods]
    return told


def test_the_changelog_agrees_with_the_registry() -> None:
    hosted = registry.current().methods.values()
    built_in: Methods = {spec.dotted: spec.deprecated for spec in hosted if spec.plugin_id is None}
    assert disagreements(CHANGELOG.read_text(encoding="utf-8"), built_in) == []


GOING = Deprecation(date(2027, 1, 1), "system.about", date(2027, 6, 1))
SAID = "## [2.0]\n\n### Deprecated\n\n- `system.version`: use `system.about`;\n  may be gone from 2027-06-01.\n"


@pytest.mark.parametrize(
    ("text", "methods", "agree"),
    [
        (SAID, {"system.version": GOING}, True),
        ("", {"system.version": GOING}, False),
        (SAID.replace("about", "info"), {"system.version": GOING}, False),
        (SAID.replace("2027-06-01", "soon"), {"system.version": GOING}, False),
        (SAID, {"system.version": None}, False),
        (SAID, {}, False),
        (SAID + "\n### Removed\n\n- `system.version`.\n", {}, True),
        ("### Removed\n\n- `system.version`.\n", {"system.version": None}, False),
        (SAID, {"system.version": Deprecation(date(2027, 5, 1), "system.about", date(2027, 6, 1))}, False),
    ],
)
def test_what_disagrees_is_told(text: str, methods: Methods, agree: bool) -> None:
    assert (disagreements(text, methods) == []) is agree
