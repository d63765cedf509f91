"""Small pictures drawn on the server: the geometry that the templates write down as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from better_compute.admin import ages
from better_compute.engine.shards import SHARDS
from better_compute.store.overview import CAP, KindDepth, LeaseRow

#: Colours that the style sheet tells holders apart by; further holders begin again.
HOLDER_COLOURS: Final = 8
_ROW: Final = 16
_CELL: Final = 14
_PITCH: Final = 16
_SMALLEST_BAR: Final = 0.8
#: Shades of the map of ages, by the time below which a lease has them; the last has no bound.
_AGES: Final = tuple(
    enumerate(
        (
            (timedelta(minutes=1), "under 1 m"),
            (timedelta(minutes=10), "1 to 10 m"),
            (timedelta(hours=1), "10 m to 1 h"),
            (timedelta(days=1), "1 h to 1 d"),
            (timedelta.max, "1 d or more"),
        )
    )
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A kind's queue: widths out of 100, and the counts as they are shown."""

    depth: KindDepth
    due_width: float
    future_width: float
    due: str
    future: str
    failing: str
    oldest: str

    @property
    def future_x(self) -> float:
        """Where the second segment begins."""
        return self.due_width


def count(number: int) -> str:
    """A count; one that was cut says so."""
    return f"{number:,}" if number <= CAP else f"{CAP:,}+"


def bars(depths: Sequence[KindDepth], now: datetime) -> list[Bar]:
    """One bar for each kind, all on the scale of the longest."""
    longest = max((depth.due + depth.future for depth in depths), default=0)

    def width(number: int) -> float:
        return round(max(100 * number / longest, _SMALLEST_BAR), 2) if number else 0.0

    return [
        Bar(
            depth=depth,
            due_width=width(depth.due),
            future_width=min(width(depth.future), 100 - width(depth.due)),
            due=count(depth.due),
            future=count(depth.future),
            failing=count(depth.failing),
            oldest=ages.span(now - depth.oldest_due_at) if depth.oldest_due_at else "-",
        )
        for depth in depths
    ]


@dataclass(frozen=True, slots=True)
class Cell:
    """A shard in the map."""

    x: int
    y: int
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class Holder:
    """A line of the map's legend; ``id`` is empty for the shards that nobody holds."""

    id: str
    css: str
    label: str
    shards: int
    ranges: str
    longest: str
    state: str


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The 256 shards of a role as two 16 by 16 maps: who holds them, and for how long."""

    role: str
    cells: list[Cell]
    ages: list[Cell]
    holders: list[Holder]
    free: int
    size: int = _ROW * _PITCH

    @property
    def age_key(self) -> list[tuple[str, str, int]]:
        """Each shade of the map of ages: its class, what it stands for, and how many shards have it."""
        shades = [cell.css for cell in self.ages]
        return [(f"compute-age-{index}", text, shades.count(f"compute-age-{index}")) for index, (_, text) in _AGES]

    @property
    def summary(self) -> str:
        """The map in words."""
        held = SHARDS - self.free
        members = sum(1 for holder in self.holders if holder.id)
        return (
            f"{held} of {SHARDS} shards held by {members} {'member' if members == 1 else 'members'}; {self.free} free."
        )


def place(lease: LeaseRow) -> str:
    """Where a lease's holder runs; its id when its row is gone."""
    return f"{lease.host}:{lease.pid}" if lease.host else str(lease.holder)


def state(lease: LeaseRow) -> str:
    """Whether the holder lives: ``live``, ``expired`` or ``gone`` when it has no row."""
    return "gone" if lease.live is None else "live" if lease.live else "expired"


def shard_maps(leases: Sequence[LeaseRow], now: datetime) -> list[ShardMap]:
    """A map for each role that has shard leases, controllers first."""
    by_role: dict[str, dict[int, LeaseRow]] = {}
    for lease in leases:
        scope, _, number = lease.name.rpartition("shard:")
        if number.isascii() and number.isdecimal() and int(number) < SHARDS and scope in ("", "scheduler/"):
            by_role.setdefault(scope.rstrip("/") or "controllers", {})[int(number)] = lease
    return [_shard_map(role, by_role[role], now) for role in sorted(by_role)]


def _shard_map(role: str, leases: dict[int, LeaseRow], now: datetime) -> ShardMap:
    held: dict[str, list[int]] = {}
    for shard in range(SHARDS):
        lease = leases.get(shard)
        if lease is not None and lease.holder:
            held.setdefault(lease.holder, []).append(shard)
    css = {holder: f"compute-holder-{index % HOLDER_COLOURS}" for index, holder in enumerate(sorted(held))}
    cells = [_cell(shard, leases.get(shard), css, now) for shard in range(SHARDS)]
    shades = [replace(cell, css=_shade(leases.get(shard), now)) for shard, cell in enumerate(cells)]
    holders = [_holder(holder, css[holder], held[holder], leases, now) for holder in sorted(held)]
    free = SHARDS - sum(map(len, held.values()))
    if free:
        nobody = [shard for shard in range(SHARDS) if shard not in leases or not leases[shard].holder]
        holders.append(Holder("", "compute-holder-none", "nobody", free, ranges(nobody), "-", "free"))
    return ShardMap(role, cells, shades, holders, free)


def _cell(shard: int, lease: LeaseRow | None, css: dict[str, str], now: datetime) -> Cell:
    x, y = shard % _ROW * _PITCH + (_PITCH - _CELL) // 2, shard // _ROW * _PITCH + (_PITCH - _CELL) // 2
    if lease is None or not lease.holder:
        return Cell(x, y, "compute-holder-none", f"Shard {shard}: held by nobody")
    age = f" for {ages.span(now - lease.acquired_at)}" if lease.acquired_at else ""
    word = state(lease)
    dead = "" if word == "live" else " compute-dead"
    return Cell(x, y, css[lease.holder] + dead, f"Shard {shard}: {place(lease)}{age}, epoch {lease.epoch}, {word}")


def _shade(lease: LeaseRow | None, now: datetime) -> str:
    if lease is None or not lease.holder or lease.acquired_at is None:
        return "compute-holder-none"
    age = now - lease.acquired_at
    return next(f"compute-age-{index}" for index, (bound, _) in _AGES if age < bound)


def _holder(id: str, css: str, shards: list[int], leases: dict[int, LeaseRow], now: datetime) -> Holder:
    first = leases[shards[0]]
    times = [acquired for shard in shards if (acquired := leases[shard].acquired_at) is not None]
    longest = ages.span(now - min(times)) if times else "-"
    return Holder(id, css, place(first), len(shards), ranges(shards), longest, state(first))


def ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers, runs drawn together: ``0-3, 7``; cut after twelve runs."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(start) if start == end else f"{start}-{end}" for start, end in runs[:12]]
    return ", ".join(shown) + (f" and {len(runs) - 12} more runs" if len(runs) > 12 else "")
