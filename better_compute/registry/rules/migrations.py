"""Names of migrations: whose they are, and that their numbers rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.core.checks import CheckMessage

from better_compute.contract import names
from better_compute.contract.module import ModuleSpec
from better_compute.registry import ids
from better_compute.registry.problem import error, shown


def check(specs: Sequence[ModuleSpec]) -> Iterator[CheckMessage]:
    """Every migration is named ``<module>/<nnnn>_<slug>``, and numbers strictly increase."""
    for spec in specs:
        numbers: list[tuple[int, str]] = []
        for name in spec.migrations:
            owner, _, local = name.partition("/") if isinstance(name, str) else ("", "", "")
            if not names.matches(names.MIGRATION_NAME, f"owner/{local}"):
                yield error(
                    ids.MIGRATION_NAME,
                    spec,
                    f"migration {shown(name)} does not match ^{names.MIGRATION_NAME.pattern}$.",
                    "Rename its file to <nnnn>_<slug>.py in lower case, e.g. 0001_widgets.py.",
                )
                continue
            if owner != spec.name:
                yield error(
                    ids.MIGRATION_OWNER,
                    spec,
                    f"migration {name!r} is owned by {owner!r}.",
                    f"Name it {spec.name}/{local}: a module ships migrations of its own only.",
                )
            numbers.append((int(local[:4]), name))
        yield from _rising(spec, numbers)


def _rising(spec: ModuleSpec, numbers: Sequence[tuple[int, str]]) -> Iterator[CheckMessage]:
    highest = -1
    before = ""
    for number, name in numbers:
        if number <= highest:
            yield error(
                ids.MIGRATION_NUMBER,
                spec,
                f"migration {name!r} has number {number:04}, which does not rise above that of {before!r}.",
                f"Give it the next number, {max(each for each, _ in numbers) + 1:04}; never renumber a shipped one.",
            )
        if number > highest:
            highest, before = number, name
