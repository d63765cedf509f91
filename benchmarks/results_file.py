"""``results.json``: one entry for each figure, merged from groups that ran at different times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Result


def merge(kept: Iterable[Mapping[str, Any]], ran: Iterable[str], results: Sequence[Result]) -> list[dict[str, Any]]:
    """Replace the entries of the groups that ``ran`` by ``results``, and leave those of the others.

    A figure's name begins with its group, ``call: ...``. An entry whose figure failed now is not kept: a
    stale figure would look measured.
    """
    prefixes = tuple(f"{group}: " for group in ran)
    others = [dict(entry) for entry in kept if not str(entry["name"]).startswith(prefixes)]
    return sorted([*others, *(result.entry() for result in results)], key=lambda entry: entry["name"])


def missing(expected: Iterable[str], results: Iterable[Result]) -> list[str]:
    """Names of figures that were due and were not measured."""
    measured = {result.name for result in results}
    return [name for name in expected if name not in measured]


def read(path: Path) -> list[dict[str, Any]]:
    """The entries of ``path``; none when it does not exist yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def write(path: Path, document: Any) -> None:
    """Write ``document`` as JSON that a diff can be read of."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
