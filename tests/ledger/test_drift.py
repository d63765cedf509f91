"""What is shipped against what was applied: any difference stops the run with the names."""

from __future__ import annotations

from pathlib import Path

import pytest

from better_compute.ledger import checksum
from tests.ledger.host import Host, run_sql, table


@pytest.fixture
def migrations(host: Host) -> Path:
    """The migrations folder of a plugin with two applied migrations."""
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"), m0002_two=table("plg_acme_two"))
    host.manage("compute_migrate")
    return folder


def edit(path: Path, old: str, new: str) -> None:
    """Replace text in a file that has it."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def add_third(host: Host, migrations: Path) -> None:
    """A pending migration, to see that nothing runs."""
    host.migration(migrations, "0003_three", table("plg_acme_three"), [("plg_acme", "0002_two")])


def test_an_edited_migration_stops_before_anything_runs(host: Host, migrations: Path) -> None:
    edit(migrations / "0001_one.py", "id bigint", "id integer")
    add_third(host, migrations)
    result = host.manage("compute_migrate", exit_code=5)
    assert "acme/0001_one: its source is not the one that was applied by version 3.1." in result.err
    assert not host.has_table("plg_acme_three")


def test_plain_migrate_stops_on_drift_too(host: Host, migrations: Path) -> None:
    edit(migrations / "0001_one.py", "id bigint", "id integer")
    add_third(host, migrations)
    assert "acme/0001_one" in host.manage("migrate", exit_code=5).err
    assert not host.has_table("plg_acme_three")


def test_check_and_plan_report_drift(host: Host, migrations: Path) -> None:
    edit(migrations / "0001_one.py", "id bigint", "id integer")
    for mode in ("--check", "--plan"):
        answer = host.manage("compute_migrate", mode, "--format", "json", exit_code=5).json()
        assert [(each["name"], each["kind"]) for each in answer["drift"]] == [("acme/0001_one", "edited")]


def test_line_endings_and_trailing_blanks_are_not_drift(host: Host, migrations: Path) -> None:
    path = migrations / "0001_one.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"  \r\n") + b"\r\n\r\n")
    host.manage("compute_migrate")


def test_a_changed_sql_file_is_drift(host: Host) -> None:
    folder = host.plugin("acme", m0001_one='RunSqlFile("acme_app", "one.sql"),')
    file = folder.parent / "one.sql"
    file.write_text("CREATE TABLE plg_acme_one (id bigint);\n")
    host.manage("compute_migrate")
    file.write_text("CREATE TABLE plg_acme_one (id integer);\n")
    assert "acme/0001_one: its source is not" in host.manage("compute_migrate", exit_code=5).err


def test_a_removed_migration_stops(host: Host, migrations: Path) -> None:
    migrations.joinpath("0002_two.py").unlink()
    result = host.manage("compute_migrate", exit_code=5)
    assert "acme/0002_two: it is applied, but not shipped." in result.err


def test_a_renumbered_migration_stops_with_both_names(host: Host, migrations: Path) -> None:
    migrations.joinpath("0002_two.py").rename(migrations / "0003_two.py")
    result = host.manage("compute_migrate", exit_code=5)
    assert "acme/0002_two: it is applied, but shipped as acme/0003_two." in result.err


def test_a_migration_put_before_an_applied_one_stops(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "0003_three", table("plg_acme_three"), [("plg_acme", "0001_one")])
    host.manage("compute_migrate")
    host.migration(folder, "0002_two", table("plg_acme_two"), [("plg_acme", "0001_one")])
    host.migration(folder, "0003_three", table("plg_acme_three"), [("plg_acme", "0002_two")])
    result = host.manage("compute_migrate", exit_code=5)
    assert "acme/0002_two: it is new, but acme/0003_three with a higher number is applied." in result.err
    assert not host.has_table("plg_acme_two")


def test_every_drift_is_listed_at_once(host: Host, migrations: Path) -> None:
    edit(migrations / "0001_one.py", "id bigint", "id integer")
    migrations.joinpath("0002_two.py").unlink()
    err = host.manage("compute_migrate", exit_code=5).err
    assert "acme/0001_one" in err
    assert "acme/0002_two" in err


def test_rehash_accepts_new_layout_with_a_reason(host: Host, migrations: Path) -> None:
    edit(migrations / "0001_one.py", "operations = [", "# laid out anew\n    operations = [")
    assert "needs a reason" in host.manage("compute_migrate", "--rehash", "acme/0001_one", exit_code=2).err
    host.manage("compute_migrate", "--rehash", "acme/0001_one", "--reason", "formatter")
    assert host.rows("SELECT name, reason FROM compute_migrations WHERE action = 'rehashed'") == [
        ("acme/0001_one", "formatter")
    ]
    host.manage("compute_migrate")


def test_rehash_refuses_what_did_not_change(host: Host, migrations: Path) -> None:
    result = host.manage("compute_migrate", "--rehash", "acme/0001_one", "--reason", "formatter", exit_code=2)
    assert "acme/0001_one is not an applied migration whose source changed. Changed are: none." in result.err


@pytest.mark.usefixtures("from_nothing")
def test_adopt_heals_what_plain_django_did(host: Host) -> None:
    host.compute["WRAP_MIGRATE"] = False
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("migrate")
    assert host.ledger() == []
    assert "acme/0001_one: django_migrations says it is applied" in host.manage("compute_migrate", exit_code=5).err
    host.manage("compute_migrate", "--adopt")
    assert host.ledger("acme") == [("acme/0001_one", "adopted")]
    host.manage("compute_migrate", "--check")


def test_adopt_records_what_was_unapplied_around_the_ledger(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    host.compute["WRAP_MIGRATE"] = False
    host.configure()
    host.manage("migrate", "plg_acme", "zero")
    assert "acme/0001_one: the ledger says it is applied" in host.manage("compute_migrate", exit_code=5).err
    host.manage("compute_migrate", "--adopt")
    assert [action for _, action in host.ledger("acme")] == ["applied", "reverted", "applied"]
    assert host.has_table("plg_acme_one")


MODEL = """migrations.CreateModel("Gadget", [("id", models.BigAutoField(primary_key=True))]),"""
COLUMN = """migrations.AddField("gadget", "note", models.TextField(null=True)),"""


@pytest.mark.parametrize(
    ("operations", "name", "there"),
    [
        ({"m0001_one": table("plg_acme_one")}, "0001_one", "plg_acme_one"),
        ({"m0001_one": MODEL}, "0001_one", "plg_acme_gadget"),
        ({"m0001_one": MODEL, "m0002_two": COLUMN}, "0002_two", "plg_acme_gadget.note"),
    ],
    ids=["sql", "model", "column"],
)
def test_adopt_does_not_call_reverted_what_still_stands(
    host: Host, operations: dict[str, str], name: str, there: str
) -> None:
    host.plugin("acme", **operations)
    host.manage("compute_migrate")
    before = host.ledger()
    host.run(f"DELETE FROM django_migrations WHERE app = 'plg_acme' AND name = '{name}'")
    assert "Nothing is pending" not in host.manage("compute_migrate", "--check", exit_code=5).out
    for command in (("compute_migrate", "--check"), ("compute_migrate", "--adopt"), ("migrate",)):
        assert f"acme/{name}: the ledger says it is applied, django_migrations does not, and {there} stands." in (
            host.manage(*command, exit_code=5).err
        )
    assert host.ledger() == before
    # The mend that was told, as it stands.
    host.run(f"INSERT INTO django_migrations (app, name, applied) VALUES ('plg_acme', '{name}', now())")
    host.manage("compute_migrate", "--check")


def test_adopt_does_not_heal_an_edited_migration(host: Host, migrations: Path) -> None:
    edit(migrations / "0001_one.py", "id bigint", "id integer")
    before = host.ledger()
    host.manage("compute_migrate", "--adopt", exit_code=5)
    assert host.ledger() == before


def test_a_fake_is_refused_unless_it_is_allowed(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate", "--module", "core")
    result = host.manage("migrate", "--fake", "plg_acme", exit_code=2)
    assert "Recording acme/0001_one without running it" in result.err
    assert host.ledger("acme") == []
    host.manage("migrate", "--fake", "--allow-fake", "plg_acme")
    assert host.ledger("acme") == [("acme/0001_one", "faked")]


def test_an_initial_migration_whose_tables_exist_is_faked_when_allowed(host: Host) -> None:
    host.plugin("acme", m0001_one='migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True))]),')
    host.run("CREATE TABLE plg_acme_one (id bigint PRIMARY KEY)")
    assert "already exists" in host.manage("compute_migrate", exit_code=4).err
    assert "without running it" in host.manage("migrate", "--fake-initial", exit_code=2).err
    host.manage("compute_migrate", "--allow-fake")
    assert host.ledger("acme") == [("acme/0001_one", "faked")]


def test_a_squash_takes_over_where_all_it_replaces_is_applied(host: Host, migrations: Path) -> None:
    path = host.migration(
        migrations, "0003_squashed", table("plg_acme_one") + table("plg_acme_two"), [("compute", "__first__")]
    )
    replaces = 'replaces = [("plg_acme", "0001_one"), ("plg_acme", "0002_two")]\n    dependencies ='
    edit(path, "dependencies =", replaces)
    host.manage("compute_migrate")
    assert host.ledger("acme")[-1] == ("acme/0003_squashed", "adopted")
    migrations.joinpath("0001_one.py").unlink()
    migrations.joinpath("0002_two.py").unlink()
    host.migration(migrations, "0004_four", table("plg_acme_four"), [("plg_acme", "0003_squashed")])
    host.manage("compute_migrate")
    assert host.ledger("acme")[-1] == ("acme/0004_four", "applied")
    host.manage("compute_migrate", "--check")


def test_where_a_squash_is_half_applied_the_rest_runs_first(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    host.migration(folder, "0002_two", table("plg_acme_two"), [("plg_acme", "0001_one")])
    path = host.migration(folder, "0003_squashed", table("plg_acme_one") + table("plg_acme_two"))
    edit(path, "dependencies =", 'replaces = [("plg_acme", "0001_one"), ("plg_acme", "0002_two")]\n    dependencies =')
    host.manage("compute_migrate")
    assert host.ledger("acme") == [
        ("acme/0001_one", "applied"),
        ("acme/0002_two", "applied"),
        ("acme/0003_squashed", "adopted"),
    ]
    host.manage("compute_migrate", "--check")


def test_a_fresh_database_runs_the_squash_and_keeps_the_replaced_names(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"), m0002_two=table("plg_acme_two"))
    path = host.migration(folder, "0003_squashed", table("plg_acme_one") + table("plg_acme_two"))
    edit(path, "dependencies =", 'replaces = [("plg_acme", "0001_one"), ("plg_acme", "0002_two")]\n    dependencies =')
    host.manage("compute_migrate")
    assert host.ledger("acme") == [
        ("acme/0001_one", "applied"),
        ("acme/0002_two", "applied"),
        ("acme/0003_squashed", "applied"),
    ]
    host.manage("compute_migrate", "--check")


def test_a_failed_migration_is_not_drift_when_it_was_edited(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=run_sql("SELECT 1 / 0"))
    host.manage("compute_migrate", exit_code=4)
    edit(folder / "0001_one.py", "1 / 0", "1 / 1")
    host.manage("compute_migrate")


def test_normalising_keeps_what_matters() -> None:
    assert checksum.normalise(b"\xef\xbb\xbfa \r\n  b\t\rc\n\n\n") == b"a\n  b\nc\n"
    assert checksum.normalise(b"a\nb") != checksum.normalise(b"ab")
