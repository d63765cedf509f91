"""PgBouncer in transaction mode, for real: serving goes through it, and a migrator notices it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from better_compute.devtools.ports import free_port
from tests.ledger.host import Host, table

pytestmark = pytest.mark.needs("pgbouncer")

CONFIG = """
[databases]
* = host={HOST} port={PORT} user={USER} password={PASSWORD}
[pgbouncer]
listen_addr = localhost
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
logfile = {folder}/log
pidfile = {folder}/pid
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
def pooled(host: Host, folder: Path) -> Iterator[dict[str, object]]:
    """The host's database behind a pooler that gives each transaction whichever backend is free."""
    port = free_port()
    server = {"HOST": "localhost", "PORT": 5432, "USER": "", "PASSWORD": "", **host.server}
    folder.joinpath("ini").write_text(CONFIG.format(**server, listen=port, folder=folder))
    command = [shutil.which("pgbouncer") or "", str(folder / "ini")]
    if os.geteuid() == 0:
        # PgBouncer refuses to run as root.
        command[1:1] = ["-u", "nobody"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = {**host.default_database, "HOST": "localhost", "PORT": port, "DISABLE_SERVER_SIDE_CURSORS": True}
        deadline = time.monotonic() + 10
        while True:
            try:
                host.connect(host="localhost", port=port).close()
                break
            except psycopg.OperationalError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=10)


def test_serving_goes_through_the_pooler_and_migrating_past_it(host: Host, pooled: dict[str, object]) -> None:
    host.databases["owner"] = host.default_database
    host.databases["default"] = pooled
    host.compute["MIGRATION_DATABASE"] = "owner"
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    assert host.ledger("acme") == [("acme/0001_one", "applied")]
    out = host.manage(
        "version",
        script="""
        from better_compute import Principal, compute
        compute.initialize("api")
        print(compute.api.system.version(Principal(id="internal/test", kind="internal")))
        compute.stop()
        """,
    ).out
    assert "core=" in out


def test_a_migrator_behind_a_pooler_that_changes_its_backend_says_so(host: Host, pooled: dict[str, object]) -> None:
    host.databases["default"] = pooled
    host.plugin("acme", m0001_one=table("plg_acme_one"), m0002_two=table("plg_acme_two"))
    # Between two transactions another client takes the backend that has the lock and keeps it busy.
    result = host.manage(
        "compute_migrate",
        script=f"""
        import psycopg
        from better_compute.ledger.executor import LedgerExecutor
        kept = []
        apply_migration = LedgerExecutor.apply_migration
        def crowded(self, state, migration, *rest, **options):
            if migration.name == "0002_two":
                for _ in range(2):
                    other = psycopg.connect(
                        host="localhost", port={pooled["PORT"]}, dbname={host.database!r},
                        user={host.server["USER"]!r}, prepare_threshold=None)
                    other.execute("SELECT 1")
                    kept.append(other)
            return apply_migration(self, state, migration, *rest, **options)
        LedgerExecutor.apply_migration = crowded
        """,
        exit_code=4,
    )
    assert "The migration lock was taken by PostgreSQL process" in result.err
    assert "COMPUTE['MIGRATION_DATABASE']" in result.err
    assert host.ledger("acme") == [("acme/0001_one", "applied")]


def test_a_lock_that_stayed_with_the_pooler_is_named_and_can_be_ended(host: Host, pooled: dict[str, object]) -> None:
    test_a_migrator_behind_a_pooler_that_changes_its_backend_says_so(host, pooled)
    del host.databases["default"]
    host.configure()
    result = host.manage("compute_migrate", "--lock-wait", "0", exit_code=None)
    if result.exit_code == 0:
        return
    assert result.exit_code == 3
    assert "it is held by PostgreSQL process" in result.err
    pid = int(result.err.split("PostgreSQL process ")[1].split()[0].rstrip(","))
    host.run(f"SELECT pg_terminate_backend({pid})")
    host.manage("compute_migrate", "--lock-wait", "10")
    assert host.ledger("acme")[-1] == ("acme/0002_two", "applied")
