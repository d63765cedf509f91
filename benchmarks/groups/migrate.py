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
            "ours": timed(lambda: call_command("compute_migrate", verbosity=0)),
            "Django migrate": timed(lambda: call_command(django_migrate.command(), **django_migrate.options())),
        },
        rounds=ROUNDS,
        configuration={
            "ours": "compute_migrate, verbosity 0, with its system checks, same process, same connection",
            "Django migrate": django_migrate.CONFIGURATION,
        },
    )
    with many_modules.folder() as folder:
        fresh = Contest(
            "500 migrations over 50 modules, fresh",
            "s",
            {
                "ours": lambda: in_a_fresh_database("ours", folder),
                "Django migrate": lambda: in_a_fresh_database("django", folder),
            },
            warm_up=0,
            configuration={
                "ours": "compute_migrate of an empty database, in a process of its own",
                "Django migrate": "Django's migrate of the same migrations, likewise",
            },
        )
        yield Group(
            [
                Figure("migrate: no-op on a current database", no_op, "Django migrate", "<= 1.2 x"),
                Figure("migrate: 500 migrations over 50 modules, fresh", fresh, "Django migrate", "<= 1.25 x"),
            ]
        )


def in_a_fresh_database(who: str, folder: str) -> float:
    """Seconds of one migration of an empty database; starting the process is not counted."""
    with own_database(os.environ["DATABASE_URL"], f"fresh_{who}") as url:
        environment = {**os.environ, "DATABASE_URL": url, many_modules.FOLDER: folder}
        command = [sys.executable, "-m", "benchmarks.many_modules", who]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr[-2_000:]
        return float(run.stdout.split()[-1])
