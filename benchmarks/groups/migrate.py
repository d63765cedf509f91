"""What the ledger costs beside Django's own ``migrate``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command

from benchmarks import many_modules
from benchmarks.database import own_database
from benchmarks.harness import Contest, Figure, Group
from benchmarks.peers import django_migrate

ROUNDS = 11
RUNS = 2


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
            "ours": timed(many_modules.compute_migrate),
            "Django migrate": timed(lambda: call_command(django_migrate.command(), **django_migrate.options())),
        },
        rounds=ROUNDS,
        configuration={
            "ours": "compute_migrate, verbosity 0, with its system checks, same process, same connection",
            "Django migrate": django_migrate.CONFIGURATION,
        },
    )
    with many_modules.folder() as folder:
        ours, django = Fresh("ours", folder), Fresh("django", folder)
        fresh = Contest(
            "500 migrations over 50 modules, fresh",
            "s",
            {"ours": ours.seconds, "Django migrate": django.seconds},
            warm_up=0,
            configuration={
                "ours": "compute_migrate of an empty database, with its system checks, in a process of its own",
                "Django migrate": "Django's migrate of the same migrations, likewise",
            },
        )
        # Whatever else the machine does lengthens the one and leaves the other as it is.
        busy = Contest(
            "the same runs in CPU time",
            "s",
            {"ours": ours.busy, "Django migrate": django.busy},
            warm_up=0,
            configuration={"ours": "of the process that migrates and of the PostgreSQL process that serves it"},
        )
        yield Group(
            [
                Figure("migrate: no-op on a current database", no_op, "Django migrate", "<= 1.2 x"),
                Figure("migrate: 500 migrations over 50 modules, fresh", fresh, "Django migrate", "<= 1.25 x"),
                Figure("migrate: the same in CPU time, client and server", busy, "Django migrate", "<= 1.25 x"),
            ]
        )


class Fresh:
    """Migrations of empty databases, each timed by the clock and by the CPU."""

    def __init__(self, who: str, folder: str) -> None:
        self._who = who
        self._folder = folder
        self._busy: list[float] = []

    def seconds(self) -> float:
        """Seconds of one more migration; starting the process is not counted."""
        with own_database(os.environ["DATABASE_URL"], f"fresh_{self._who}") as url:
            environment = {**os.environ, "DATABASE_URL": url, many_modules.FOLDER: self._folder}
            command = [sys.executable, "-m", "benchmarks.many_modules", self._who]
            run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr[-2_000:]
        seconds, busy = (float(word) for word in run.stdout.split()[-2:])
        self._busy.append(busy)
        return seconds

    def busy(self) -> float:
        """CPU seconds of the earliest migration that was not asked for yet."""
        return self._busy.pop(0)
