"""Taking every thread's stack is safe in a process that collects garbage."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from threading import get_ident

import pytest

from better_compute.engine import watchdog


@pytest.fixture
def collected_inside(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the collector did while stacks were taken, which takes more allocations than it waits for."""
    take, inside, seen = sys._current_frames, [False], list[str]()

    def frames() -> object:
        inside[0] = True
        _ = [[] for _ in range(2 * gc.get_threshold()[0])]
        found = take()
        inside[0] = False
        return found

    def note(phase: str, info: dict[str, int]) -> None:
        if inside[0]:
            seen.append(phase)

    monkeypatch.setattr(sys, "_current_frames", frames)
    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def test_no_collection_begins_while_stacks_are_taken(collected_inside: list[str]) -> None:
    assert get_ident() in watchdog.stacks()
    assert collected_inside == []
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        watchdog.stacks()
        assert not gc.isenabled()
    finally:
        gc.enable()
