"""The queues over time, drawn on the server: the geometry that the templates write down as SVG.

The plots stretch to their place, so they hold shapes only; labels of axes stand beside them as text. All ticks are
evenly spaced, because the content policy allows no position to be written into the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils.formats import date_format
from django.utils.timezone import localtime

from better_compute.admin.pictures import HOLDER_COLOURS
from better_compute.store.history import CAP, Depth, History

#: Kinds that have a band of their own; the rest are drawn together.
OWN_BANDS: Final = HOLDER_COLOURS - 1
#: Height of a plot in its own units.
HEIGHT: Final = 100
#: Width of one slot.
SLOT: Final = 10
#: Steps between the ticks of the y axis, and of the x axis.
TICKS: Final = 4

#: What may be looked at: in the address, in words, the length of a slot and how many there are.
SPANS: Final = {
    "1h": ("1 hour", timedelta(minutes=2), 30),
    "6h": ("6 hours", timedelta(minutes=5), 72),
    "24h": ("24 hours", timedelta(minutes=15), 96),
    "48h": ("48 hours", timedelta(minutes=30), 96),
}


@dataclass(frozen=True, slots=True)
class Band:
    """One colour of a stacked plot: outlines of its area (one for each stretch without a gap), and its figures."""

    kind: str
    css: str
    areas: list[str]
    peak: int
    last: int


@dataclass(frozen=True, slots=True)
class Column:
    """A slot to point at: its place, and what was queued then, in words."""

    x: int
    text: str


@dataclass(frozen=True, slots=True)
class Stacked:
    """Due keys of all kinds over each other."""

    bands: list[Band]
    columns: list[Column]
    #: Places of slots that were not sampled.
    gaps: list[int]
    #: From the top.
    y_labels: list[str]
    x_labels: list[str]
    width: int
    summary: str
    #: Whether any slot was sampled.
    sampled: bool


@dataclass(frozen=True, slots=True)
class Small:
    """One kind's own plot on its own scale: due keys as areas, failing ones as lines over them."""

    kind: str
    due: list[str]
    failing: list[str]
    gaps: list[int]
    top: str
    peak: str
    last: str
    peak_failing: str
    peak_oldest_s: int
    width: int


def count(number: int) -> str:
    """A count; one that was cut says so."""
    return f"{number:,}" if number <= CAP else f"{CAP:,}+"


def nice(number: int) -> int:
    """The smallest round number at or above ``number`` that :data:`TICKS` divides: 4, 8, 20, 40, 80, 200 and so on."""
    scale = TICKS
    while True:
        for factor in (1, 2, 5):
            if factor * scale >= number:
                return factor * scale
        scale *= 10


def stacked(history: History) -> Stacked:
    """The due keys of every kind; the :data:`OWN_BANDS` with the highest peaks have a band of their own."""
    peaks = {kind: max(figures) for kind in history.kinds if max(figures := _series(history, kind, _due))}
    by_peak = sorted(peaks, key=lambda kind: (-peaks[kind], kind))
    own = by_peak[:OWN_BANDS]
    rest = by_peak[OWN_BANDS:]
    series = [(kind, _series(history, kind, _due)) for kind in own]
    last = [_last(history, [kind]) for kind in own]
    if rest:
        others = [sum(figures) for figures in zip(*(_series(history, kind, _due) for kind in rest), strict=True)]
        series.append((f"{len(rest)} others", others))
        last.append(_last(history, rest))
    top = nice(max((sum(figures) for figures in zip(*(values for _, values in series), strict=True)), default=0))
    floor = [0] * len(history.slots)
    bands = []
    for index, (kind, values) in enumerate(series):
        ceiling = [below + value for below, value in zip(floor, values, strict=True)]
        bands.append(
            Band(
                kind,
                f"compute-holder-{index}",
                _areas(history, floor, ceiling, top),
                max(values),
                last[index],
            )
        )
        floor = ceiling
    return Stacked(
        bands=bands,
        columns=[_column(history, index, series) for index in range(len(history.slots))],
        gaps=_gaps(history),
        y_labels=[f"{top * step // TICKS:,}" for step in range(TICKS, -1, -1)],
        x_labels=_times(history),
        width=SLOT * len(history.slots),
        summary=_summary(history, bands),
        sampled=any(slot is not None for slot in history.slots),
    )


def small(history: History) -> list[Small]:
    """A plot for each kind, those with the most keys due first."""
    found = []
    for kind in history.kinds:
        due, failing = _series(history, kind, _due), _series(history, kind, lambda depth: depth.failing)
        oldest = _series(history, kind, lambda depth: depth.oldest_due_s)
        top = nice(max(*due, *failing))
        found.append(
            (
                (-max(due), kind),
                Small(
                    kind=kind,
                    due=_areas(history, [0] * len(due), due, top),
                    failing=_lines(history, failing, top) if max(failing) else [],
                    gaps=_gaps(history),
                    top=f"{top:,}",
                    peak=count(max(due)),
                    last=count(_last(history, [kind])),
                    peak_failing=count(max(failing)),
                    peak_oldest_s=max(oldest),
                    width=SLOT * len(due),
                ),
            )
        )
    return [plot for _, plot in sorted(found, key=lambda pair: pair[0])]


def spark(history: History, kind: str) -> list[str]:
    """A kind's due keys as areas on its own scale, for a line of a table; empty where nothing was ever due."""
    due = _series(history, kind, _due)
    return _areas(history, [0] * len(due), due, max(due)) if any(due) else []


def _due(depth: Depth) -> int:
    return depth.due


def _series(history: History, kind: str, figure: Callable[[Depth], int]) -> list[int]:
    nothing = Depth()
    return [figure((slot or {}).get(kind, nothing)) for slot in history.slots]


def _last(history: History, kinds: Sequence[str]) -> int:
    """Due keys of ``kinds`` in the newest sample; a slot's own figure is its highest."""
    return sum(sum(_series(history, kind, lambda depth: depth.newest)) for kind in kinds)


def _runs(history: History) -> Iterator[tuple[int, int]]:
    """First and last index of each stretch of sampled slots."""
    start = None
    for index, slot in enumerate([*history.slots, None]):
        if slot is not None and start is None:
            start = index
        elif slot is None and start is not None:
            yield start, index - 1
            start = None


def _gaps(history: History) -> list[int]:
    # The newest slot has only begun: it is no gap that its sample is still to come.
    return [SLOT * index for index, slot in enumerate(history.slots[:-1]) if slot is None]


def _areas(history: History, floor: Sequence[int], ceiling: Sequence[int], top: int) -> list[str]:
    return [
        " ".join(
            [
                "M" + " L".join(_points(ceiling, start, end, top)),
                "L" + " L".join(reversed(_points(floor, start, end, top))) + " Z",
            ]
        )
        for start, end in _runs(history)
        if any(ceiling[index] > floor[index] for index in range(start, end + 1))
    ]


def _lines(history: History, values: Sequence[int], top: int) -> list[str]:
    return ["M" + " L".join(_points(values, start, end, top)) for start, end in _runs(history)]


def _points(values: Sequence[int], start: int, end: int, top: int) -> list[str]:
    """A step for each slot, so that a single sampled one has a width too."""
    points = []
    for index in range(start, end + 1):
        y = f"{HEIGHT - HEIGHT * values[index] / max(top, 1):.4g}"
        points += [f"{SLOT * index} {y}", f"{SLOT * (index + 1)} {y}"]
    return points


def _column(history: History, index: int, series: Sequence[tuple[str, Sequence[int]]]) -> Column:
    at = _time(history.since + history.step * index, history.until)
    if history.slots[index] is None:
        return Column(SLOT * index, f"{at}: not sampled")
    figures = [f"{kind} {count(values[index])}" for kind, values in series if values[index]]
    return Column(SLOT * index, f"{at}: {', '.join(figures) or 'nothing due'}")


def _times(history: History) -> list[str]:
    length = history.until - history.since
    return [_time(history.since + length * step / TICKS, history.until) for step in range(TICKS)] + ["now"]


def _time(moment: datetime, now: datetime) -> str:
    local = localtime(moment)
    return date_format(local, "H:i" if local.date() == localtime(now).date() else "D H:i")


def _summary(history: History, bands: Sequence[Band]) -> str:
    sampled = sum(1 for slot in history.slots if slot is not None)
    if not bands:
        return "No key was due." if sampled else "Nothing was sampled yet."
    return "; ".join(f"{band.kind}: {count(band.last)} due, at most {count(band.peak)}" for band in bands) + "."
