"""An older schema with data, migrated forward, is the schema of a new installation; old code runs on the new one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.catalog import snapshot
from tests.ledger.host import REPOSITORY, Host, run_sql, table

MIGRATIONS = sorted(path.stem for path in (REPOSITORY / "better_compute" / "migrations").glob("0*.py"))

#: Rows for the tables of the first schemas, each where it is there.
DATA = """
DO $$ BEGIN
  UPDATE compute_clock SET anchored_at = compute_now();
  IF to_regclass('compute_work') IS NOT NULL THEN
    INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at)
      VALUES ('acme.widgets', 't1', 3, compute_now(), compute_now());
    INSERT INTO compute_leases (name) VALUES ('shard:3');
  END IF;
  IF to_regclass('compute_outbox') IS NOT NULL THEN
    INSERT INTO compute_outbox (type, tenant_id, subject, data) VALUES ('acme.poked', 't1', 'widget/1', '{}');
  END IF;
  IF to_regclass('compute_audit_events') IS NOT NULL THEN
    INSERT INTO compute_audit_events (tenant_id, principal, method, action, resource_type, resource_id, outcome,
      request_id, canonical, salt, leaf_hash)
    VALUES ('t1', 'p', 'm', 'a', 'r', 'i', 'allowed', 'q', '{}', decode(repeat('00', 16), 'hex'),
      decode(repeat('00', 32), 'hex'));
  END IF;
END $$
"""
KEPT = """
SELECT (SELECT count(*) FROM compute_work), (SELECT count(*) FROM compute_leases),
       (SELECT count(*) FROM compute_outbox), (SELECT count(*) FROM compute_audit_events)
"""


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory, core_host: Host) -> list[str]:
    """The schema of a new installation of the core."""
    return snapshot(core_host)


@pytest.mark.usefixtures("from_nothing")
@pytest.mark.parametrize("step", MIGRATIONS[:-1])
def test_every_older_schema_with_data_becomes_the_fresh_one(host: Host, fresh: list[str], step: str) -> None:
    host.manage("migrate", "compute", step)
    host.run(DATA)
    host.manage("compute_migrate")
    assert snapshot(host) == fresh
    number = int(step[:4])
    assert host.rows(KEPT) == [(*[int(number >= 2)] * 2, int(number >= 3), int(number >= 4))]


@pytest.mark.usefixtures("from_nothing")
def test_unapplying_each_core_migration_and_applying_it_again_changes_nothing(host: Host, fresh: list[str]) -> None:
    host.manage("compute_migrate")
    for step in reversed(MIGRATIONS[:-1]):
        host.manage("migrate", "compute", step)
    host.manage("compute_migrate")
    assert snapshot(host) == fresh


#: How far back a commit is looked for that can migrate at all: one that cannot has no schema to come from.
COMMITS = 8


def older_trees(tmp_path: Path) -> Iterator[Path]:
    """The tree of the newest release; while there is none, those of the commits before this one, latest first."""
    git = ["git", "-C", str(REPOSITORY)]
    tags = subprocess.run([*git, "tag", "--list", "v*", "--merged", "HEAD~1"], capture_output=True, text=True)
    if tags.returncode != 0:
        pytest.skip("needs a git checkout with history")
    released = tags.stdout.split()[-1:]
    for base in released or [f"HEAD~{back}" for back in range(1, COMMITS + 1)]:
        tree = tmp_path / base
        tree.mkdir()
        archive = subprocess.run([*git, "archive", base, "better_compute", "compute_modules"], capture_output=True)
        if archive.returncode == 0:
            subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
            yield tree


def with_tree(host: Host, tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with another tree's code, in a process that has imported none of ours."""
    code = "import sys; from django.core.management import execute_from_command_line as run; run(sys.argv)"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=host.root,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": f"{host.root}{os.pathsep}{tree}"},
        capture_output=True,
        text=True,
    )


@pytest.mark.usefixtures("from_nothing")
def test_the_previous_schema_is_upgraded_or_refused_by_name(host: Host, fresh: list[str], tmp_path: Path) -> None:
    errors = []
    for tree in older_trees(tmp_path):
        ran = with_tree(host, tree, "compute_migrate")
        if ran.returncode == 0:
            break
        errors.append(ran.stderr)
    else:
        pytest.fail("no older commit could migrate an empty database:\n" + "\n".join(errors))
    host.run(DATA)
    result = host.manage("compute_migrate", exit_code=None)
    if result.exit_code == 5:
        # Before the first release a migration may still be edited in place; then nothing runs, and it is named.
        assert "core/0" in result.err
        return
    assert result.exit_code == 0, result.err
    assert snapshot(host) == fresh
    assert host.rows(KEPT) == [(1, 1, 1, 1)]


#: What a process of the old release does while the new schema is there already.
OLD = """
from django.db import connection
from better_compute import compute
compute.initialize("api")
with connection.cursor() as cursor:
    cursor.execute("INSERT INTO plg_acme_one (id) VALUES (7)")
    cursor.execute("SELECT id FROM plg_acme_one")
    print("old code read", cursor.fetchone()[0])
compute.stop()
"""


def test_old_code_starts_and_writes_on_the_expanded_schema(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    expand = run_sql(
        "ALTER TABLE plg_acme_one ADD COLUMN kind text NOT NULL DEFAULT 'plain'",
        "ALTER TABLE plg_acme_one DROP COLUMN kind",
    )
    path = host.migration(folder, "0002_pre_kind", expand, [("plg_acme", "0001_one")])
    host.manage("compute_migrate")
    path.unlink()
    assert "old code read 7" in host.manage("version", script=OLD).out
    assert host.rows("SELECT kind FROM plg_acme_one") == [("plain",)]


def test_old_code_does_not_migrate_over_what_it_does_not_know(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    path = host.migration(folder, "0002_two", table("plg_acme_two"), [("plg_acme", "0001_one")])
    host.manage("compute_migrate")
    path.unlink()
    assert "acme/0002_two: it is applied, but not shipped." in host.manage("compute_migrate", exit_code=5).err


def test_new_code_does_not_start_before_its_migration(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    host.migration(folder, "0002_pre_kind", table("plg_acme_two"), [("plg_acme", "0001_one")])
    result = host.manage("version", script=OLD, exit_code=1)
    assert "1 migrations are pending: acme/0002_pre_kind." in result.err
