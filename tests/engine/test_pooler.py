"""A worker behind PgBouncer in transaction mode: right, at poll latency, and nothing of it stays in the pool."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from better_compute.devtools.ports import free_port

from .conftest import Worker, ask, enqueue, eventually, queued, told
from .test_worker import ready

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.needs("pgbouncer")]
Start = Callable[..., Worker]

#: Backends of the pool; a worker's threads outnumber them.
BACKENDS = 4
CONFIG = """
[databases]
* = host={host} port={port} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {backends}
logfile = {folder}/log
pidfile = {folder}/pid
"""
#: What a session may differ in, and must not.
TRACES = """
SELECT pg_backend_pid(), current_setting('default_transaction_read_only'), current_setting('statement_timeout'),
       current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
       current_setting('enable_seqscan'), current_setting('synchronous_commit'),
       (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach and write to; pytest's own can be root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer"))
    # PgBouncer gives root up and then writes its log here.
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def pooled_url(owner_url: str, folder: Path) -> Iterator[str]:
    """The test database behind a pooler that gives each transaction whichever backend is free."""
    parts, listen = urlsplit(owner_url), free_port()
    folder.joinpath("ini").write_text(
        CONFIG.format(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            password=parts.password,
            listen=listen,
            folder=folder,
            backends=BACKENDS,
        )
    )
    command = [shutil.which("pgbouncer") or "", str(folder / "ini")]
    if os.geteuid() == 0:
        # PgBouncer refuses to run as root.
        command[1:1] = ["-u", "nobody"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = urlunsplit(parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{listen}"))
    try:
        eventually(lambda: _answers(url))
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def worker(start_worker: Start, pooled_url: str) -> Worker:
    """A worker behind it, with every lease."""
    worker = start_worker(DATABASE_URL=pooled_url, PLANT_POOLED="1", CELERY_BROKER_URL="redis://127.0.0.1:9/0")
    ready(worker)
    return worker


def test_it_runs_what_is_committed(worker: Worker) -> None:
    enqueue("plant.marks", *[f"k{number}" for number in range(20)])
    enqueue("plant.nodes", *[f"node-{number}" for number in range(20)])
    enqueue("plant.bulk", *[f"bulk-{number}" for number in range(50)])
    eventually(lambda: not queued("plant.marks") and not queued("plant.nodes") and not queued("plant.bulk"))
    assert len({row["key"] for row in told("ran") if row["key"] != "beat"}) == 90
    assert ask("SELECT count(*) FROM compute_workers WHERE backend_pid IS NOT NULL") == [(0,)]


def test_a_write_outside_the_fence_is_still_refused(worker: Worker) -> None:
    enqueue("plant.outside", "k")
    [(error,)] = eventually(
        lambda: ask("SELECT last_error FROM compute_work WHERE kind = 'plant.outside' AND last_error IS NOT NULL")
    )
    assert "a write outside ctx.sql.transaction()" in error


def test_a_fenced_transaction_bounds_itself(worker: Worker, pooled_url: str) -> None:
    enqueue("plant.holds", "1")
    # One message begins the transaction, bounds it and fences it; nothing else has been asked of it while it holds.
    [(begun,)] = eventually(
        lambda: ask(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database() "
            "AND state = 'idle in transaction' AND query LIKE 'BEGIN READ WRITE;%%'"
        )
    )
    bounded = set(re.findall(r'SET LOCAL "(\w+)" = ', begun))
    assert bounded == {"idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout"}
    eventually(lambda: not queued("plant.holds"))


def test_nothing_of_it_stays_in_the_pool(worker: Worker, pooled_url: str, owner_url: str) -> None:
    enqueue("plant.marks", "one")
    enqueue("plant.outside", "k")
    eventually(lambda: told("ran", "one") and ask("SELECT 1 FROM compute_work WHERE last_error IS NOT NULL"))
    worker.terminate()
    assert worker.wait() == 0
    with ExitStack() as stack:
        clients = [stack.enter_context(psycopg.connect(pooled_url)) for _ in range(BACKENDS)]
        # Each keeps its backend while its transaction is open, so together they see all of the pool.
        traces = [client.execute(TRACES).fetchone() for client in clients]
    assert len({trace[0] for trace in traces if trace}) == BACKENDS
    with psycopg.connect(owner_url) as fresh:
        untouched = fresh.execute(TRACES).fetchone()
    assert untouched is not None
    assert {trace[1:] for trace in traces if trace} == {untouched[1:]}
