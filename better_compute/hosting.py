"""A process's life as a host of modules: from :func:`initialize` to :func:`stop`.

Server and worker entry points call these; nothing does from ``AppConfig.ready()``, which runs for every
management command too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import Final

from better_compute import conf, registry
from better_compute.contract.module import ModuleSpec
from better_compute.engine.contexts import module_context
from better_compute.store import clock

log = logging.getLogger(__name__)

_LOCK: Final = RLock()


@dataclass(slots=True)
class _Life:
    """What this process has started and has to stop."""

    running: bool = False
    started: list[ModuleSpec] = field(default_factory=list)
    loops: list[Callable[[], None]] = field(default_factory=list)


_life: Final = _Life()


def initialize(role: str) -> None:
    """Make this process ready to serve as ``role``; a second call does nothing."""
    with _LOCK:
        if _life.running:
            return
        modules = registry.current().modules
        clock.anchor(conf.current().database)
        for spec in modules:
            if spec.start is not None:
                spec.start(module_context(spec))
            _life.started.append(spec)
        _life.running = True


def on_stop(callback: Callable[[], None]) -> None:
    """Have ``callback`` called by :func:`stop` before any module is stopped; loops end themselves so."""
    with _LOCK:
        _life.loops.append(callback)


def stop() -> None:
    """Stop the loops, then the modules in reverse order of their start."""
    with _LOCK:
        while _life.loops:
            _life.loops.pop()()
        while _life.started:
            spec = _life.started.pop()
            if spec.stop is not None:
                spec.stop()
        _life.running = False
