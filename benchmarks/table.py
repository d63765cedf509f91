"""The printed table: ours, the peer, the ratio, the bar, and whether it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.bars import STATED
from benchmarks.harness import Result, Samples

HOLDS: Final = "holds"
MISSED: Final = "MISSED"


def number(value: float | None) -> str:
    """Three significant digits, with thousands separated."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rows(results: Sequence[Result]) -> list[list[str]]:
    """The cells of each figure."""
    return [
        [
            result.name,
            f"{number(result.value)} {result.unit}",
            f"{number(result.peer_value)} {result.unit}" if result.peer else "-",
            number(result.ratio),
            f"{number(result.spread[0])} .. {number(result.spread[1])}",
            result.bar,
            "" if result.bar == STATED else HOLDS if result.holds else MISSED,
        ]
        for result in results
    ]


HEAD: Final = ["figure", "ours", "peer", "ratio", "over rounds", "bar", ""]


def render(results: Sequence[Result], failed: Mapping[str, str]) -> str:
    """The table, then the notes, then what was not measured and why."""
    cells = [HEAD, *rows(results)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += [f"  {result.name}: beside {result.peer}. {result.note}" for result in results if result.note]
    lines += [f"FAILED  {name}: {reason}" for name, reason in failed.items()]
    return "\n".join(lines)


def configuration(samples: Sequence[Samples]) -> str:
    """What each contestant ran with."""
    return "\n".join(
        f"  {contest.contest} / {name}: {text}" for contest in samples for name, text in contest.configuration.items()
    )
