"""The example project with the arena, beating fast."""

import os

from example_project.settings import *  # noqa: F403
from example_project.settings import INSTALLED_APPS, database

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos.arena"]
DATABASES = {"default": database(os.environ.get("DATABASE_URL", "postgresql:///better_compute"))}
COMPUTE = {
    "WORKER": {
        "TTL_MS": int(os.environ.get("CHAOS_TTL_MS", "3000")),
        "TICK_MS": int(os.environ.get("CHAOS_TTL_MS", "3000")) // 6,
        "GRACE_MS": 5_000,
        # Runs mostly wait, so that each process always has some before and some inside their transactions.
        "THREADS": 8,
        "BATCH": 20,
    }
}
