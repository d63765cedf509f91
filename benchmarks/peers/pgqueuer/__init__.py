"""PgQueuer, the fastest job queue on PostgreSQL in Python that we know of.

Its contract for a job is richer: a payload, a priority, a status and a log row for each job, and any worker may
take any job. It coalesces only by a dedupe key, and fences nothing.
"""

from __future__ import annotations

import asyncio
import os
import time
from importlib.metadata import version
from typing import Any

PINNED = {"pgqueuer": "1.6.0", "asyncpg": "0.32.0"}
BATCH = 100
CONFIGURATION = (
    "PgQueuer 1.6.0, asyncpg 0.32.0, one connection, one process, batch 100, drain mode, no-op entrypoint, "
    "default durability; its richer contract: payload, priority, status and a log row for each job"
)


async def _drain(jobs: int) -> float:
    import asyncpg
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.models import Job
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    connection: Any = await asyncpg.connect(os.environ["DATABASE_URL"])
    try:
        driver = AsyncpgDriver(connection)
        queries = Queries(driver)
        if not await queries.schema_is_installed():
            await queries.install()
        queuer = PgQueuer.from_asyncpg_connection(connection)
        ran = 0

        @queuer.entrypoint("no-op")
        async def no_op(job: Job) -> None:
            nonlocal ran
            ran += 1

        await queries.enqueue(["no-op"] * jobs, [None] * jobs, [0] * jobs)
        began = time.perf_counter()
        await queuer.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
        seconds = time.perf_counter() - began
        assert ran == jobs, f"PgQueuer ran {ran} of {jobs} jobs"
        return jobs / seconds
    finally:
        await connection.close()


def drain(jobs: int) -> float:
    """Enqueue ``jobs`` jobs, then drain them; jobs a second.

    Raises
    ------
    AssertionError
        When another version than the pinned one is installed.
    """
    installed = {name: version(name) for name in PINNED}
    assert installed == PINNED, f"pinned {PINNED}, installed {installed}"
    return asyncio.run(_drain(jobs))
