"""What the ledger costs beside Django's own ``migrate``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command

from benchmarks.harness import Contest, Figure, Group
from benchmarks.peers import django_migrate

ROUNDS = 15
RUNS = 3


def timed(run: Callable[[], Any], runs: int = RUNS) -> Callable[[], float]:
    """A measure of the fastest of ``runs``, in milliseconds."""

    def measure() -> float:
        times = []
        for _ in range(runs):
            began = time.perf_counter()
            run()
            times.append((time.perf_counter() - began) * 1_000)
        return min(times)

    return measure


@contextmanager
def prepared(*, full: bool) -> Iterator[Group]:
    """Bring the database up to date; after that neither command has anything to do."""
    call_command("compute_migrate", verbosity=0)
    no_op = Contest(
        "migrate a current database",
        "ms/run",
        {
            "ours": timed(lambda: call_command("compute_migrate", verbosity=0)),
            "Django migrate": timed(lambda: call_command(django_migrate.command(), **django_migrate.options())),
        },
        rounds=ROUNDS,
        configuration={
            "ours": "compute_migrate, verbosity 0, with its system checks, same process, same connection",
            "Django migrate": django_migrate.CONFIGURATION,
        },
    )
    yield Group([Figure("migrate: no-op on a current database", no_op, "Django migrate", "<= 1.2 x")])
