"""A worker process that hosts the benchmark's reconcilers: ``python -m benchmarks.member``; SIGTERM ends it."""

from __future__ import annotations

import signal
from threading import Event

import django

ENDED = Event()


def main() -> None:
    """Run until SIGTERM."""
    django.setup()
    from benchmarks import queue

    signal.signal(signal.SIGTERM, lambda *_: ENDED.set())
    with queue.running_engine(patient=False):
        ENDED.wait()


if __name__ == "__main__":
    main()
