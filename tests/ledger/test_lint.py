"""Advice for module authors, one test a rule."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models.functions import Now
from django.utils import timezone

from better_compute import ComputeMigration, ComputeNow
from better_compute.contract.module import ModuleSpec
from better_compute.ledger import lint
from tests.ledger.host import Host, run_sql

ACME = ModuleSpec(name="acme", path="acme", label="plg_acme", plugin_id="acme")


def advice(*operations: Operation) -> list[lint.Advice]:
    """Advice on one migration with these operations."""
    shipped: Sequence[Operation] = operations
    migration = type("Migration", (ComputeMigration,), {"operations": list(shipped)})("0002_two", "plg_acme")
    return lint.check(ACME, [migration])


def codes(*operations: Operation) -> list[str]:
    """Codes of the advice."""
    return [each.code for each in advice(*operations)]


def column(field: models.Field) -> Operation:  # type: ignore[type-arg]
    """An operation that adds a column to a table that is there already."""
    return migrations.AddField("one", "two", field)


@pytest.mark.parametrize(
    "field",
    [
        models.DateTimeField(null=True, db_default=Now()),
        models.DateTimeField(null=True, auto_now_add=True),
        models.DateTimeField(null=True, auto_now=True),
        models.DateTimeField(null=True, default=timezone.now),
    ],
)
def test_now_in_a_default_is_told(field: models.DateTimeField) -> None:  # type: ignore[type-arg]
    assert codes(column(field)) == ["NOW_DEFAULT"]


def test_compute_now_is_the_way() -> None:
    assert codes(column(models.DateTimeField(db_default=ComputeNow()))) == []


def test_now_in_sql_is_told_but_not_in_a_comment() -> None:
    assert codes(migrations.RunSQL("ALTER TABLE x ADD y timestamptz DEFAULT now()", "SELECT 1")) == ["NOW_DEFAULT"]
    assert codes(migrations.RunSQL("SELECT compute_now() -- never now()", "SELECT 1")) == []


def test_a_foreign_key_onto_the_core_is_told() -> None:
    key = models.ForeignKey("compute.Token", models.CASCADE, null=True)
    assert codes(column(key)) == ["CORE_FOREIGN_KEY"]


def test_a_table_outside_the_prefix_is_told() -> None:
    fields = [("id", models.BigAutoField(primary_key=True))]
    assert codes(migrations.CreateModel("One", fields, {"db_table": "widgets"})) == ["TABLE_PREFIX"]
    assert codes(migrations.CreateModel("One", fields, {"db_table": "plg_acme_widgets"})) == []
    assert codes(migrations.CreateModel("One", fields)) == []


def test_an_index_on_a_table_in_use_is_told() -> None:
    index = models.Index(fields=["two"], name="plg_acme_two")
    assert codes(migrations.AddIndex("one", index)) == ["BIG_LOCK"]
    assert codes(AddIndexConcurrently("one", index)) == []


def test_an_index_on_a_table_of_the_same_migration_is_fine() -> None:
    create = migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True))])
    assert codes(create, migrations.AddIndex("one", models.Index(fields=["id"], name="plg_acme_id"))) == []


def test_what_cannot_be_reversed_is_told() -> None:
    assert codes(migrations.RunSQL("SELECT 1")) == ["NO_REVERSE"]


def test_a_new_column_that_old_code_cannot_fill_is_told() -> None:
    (found,) = advice(column(models.IntegerField()))
    assert str(found) == (
        "acme/0002_two: NOT_NULL: new column 'two' is NOT NULL without a default in the database; old code inserts "
        "rows without the new column. Give it db_default, or null=True until the next release."
    )
    assert codes(column(models.IntegerField(db_default=0))) == []
    assert codes(column(models.IntegerField(null=True))) == []


def test_a_rename_breaks_old_code() -> None:
    assert codes(migrations.RenameField("one", "two", "three")) == ["BREAKS_OLD_CODE"]
    assert codes(migrations.RemoveField("one", "two")) == ["BREAKS_OLD_CODE"]


def test_a_table_that_goes_or_moves_breaks_old_code() -> None:
    assert "BREAKS_OLD_CODE" in codes(migrations.DeleteModel("One"))
    assert codes(migrations.AlterModelTable("one", "plg_acme_two")) == ["BREAKS_OLD_CODE"]


@pytest.mark.parametrize("index", [{"unique": True}, {"db_index": True}])
def test_a_column_that_comes_with_its_index_is_told(index: dict[str, bool]) -> None:
    assert codes(column(models.IntegerField(null=True, **index))) == ["BIG_LOCK"]


def sql(text: str) -> list[str]:
    """Codes of the advice on SQL that can be reversed."""
    return codes(migrations.RunSQL(text, migrations.RunSQL.noop))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE plg_acme_x (t text REFERENCES compute_tokens (id))", "CORE_FOREIGN_KEY"),
        ("CREATE TABLE plg_acme_x (t text, FOREIGN KEY (t) REFERENCES public.compute_tokens)", "CORE_FOREIGN_KEY"),
        ("CREATE TABLE widgets (id int)", "TABLE_PREFIX"),
        ("CREATE UNLOGGED TABLE IF NOT EXISTS public.widgets (id int)", "TABLE_PREFIX"),
        ("CREATE INDEX i ON plg_acme_x (id)", "BIG_LOCK"),
        ("CREATE UNIQUE INDEX IF NOT EXISTS i ON ONLY plg_acme_x USING btree (id)", "BIG_LOCK"),
        ("LOCK TABLE plg_acme_x IN SHARE MODE", "BIG_LOCK"),
        ("LOCK plg_acme_x", "BIG_LOCK"),
        ("ALTER TABLE plg_acme_x ADD CONSTRAINT c CHECK (id IN (1, 2))", "BIG_LOCK"),
        ("ALTER TABLE plg_acme_x ALTER COLUMN id TYPE bigint", "BIG_LOCK"),
        ("ALTER TABLE plg_acme_x ALTER id SET NOT NULL", "BIG_LOCK"),
        ("ALTER TABLE IF EXISTS ONLY plg_acme_x ADD COLUMN a int, ADD b numeric(3, 2) NOT NULL", "NOT_NULL"),
        ("ALTER TABLE plg_acme_x DROP COLUMN a", "BREAKS_OLD_CODE"),
        ("ALTER TABLE plg_acme_x RENAME a TO b", "BREAKS_OLD_CODE"),
        ("DROP TABLE IF EXISTS plg_acme_x", "BREAKS_OLD_CODE"),
    ],
)
def test_sql_is_advised_on_like_operations(text: str, code: str) -> None:
    assert sql(text) == [code]
    # A list of statements is read like one text, and so are statements that come with parameters.
    assert codes(migrations.RunSQL([text, ("SELECT %s", [1])], migrations.RunSQL.noop)) == [code]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE plg_acme_x (id int NOT NULL); CREATE INDEX i ON plg_acme_x (id);"
        " ALTER TABLE plg_acme_x ADD a int NOT NULL; ALTER TABLE plg_acme_x ALTER a SET NOT NULL",
        "CREATE INDEX CONCURRENTLY i ON plg_acme_x (id)",
        "ALTER TABLE plg_acme_x ADD CONSTRAINT c CHECK (id > 0) NOT VALID",
        "ALTER TABLE plg_acme_x ADD CONSTRAINT c UNIQUE USING INDEX i",
        "ALTER TABLE plg_acme_x VALIDATE CONSTRAINT c",
        "ALTER TABLE plg_acme_x ADD a int NOT NULL DEFAULT 0, ADD b int GENERATED ALWAYS AS (a) STORED NOT NULL",
        "CREATE TABLE plg_acme_y (x text REFERENCES plg_acme_x)",
        "COMMENT ON TABLE plg_acme_x IS 'DROP TABLE plg_acme_x; LOCK TABLE it''s now()'",
        "CREATE FUNCTION plg_acme_f() RETURNS int LANGUAGE sql AS $f$ SELECT 1; DROP TABLE x $f$",
        "/* LOCK TABLE x; */ SELECT 1 -- DROP TABLE x",
    ],
)
def test_sql_that_hurts_nobody_is_left_alone(text: str) -> None:
    assert sql(text) == []


def test_sql_on_a_table_that_the_same_migration_made_as_a_model_is_fine() -> None:
    create = migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True))])
    index = migrations.RunSQL("CREATE INDEX i ON plg_acme_one (id)", migrations.RunSQL.noop)
    assert codes(create, index) == []


def test_the_command_exits_1_with_advice_and_0_without(host: Host) -> None:
    host.plugin("acme", m0001_one=run_sql("SELECT 1"))
    answer = host.manage("compute_check_migrations", "--format", "json", exit_code=1).json()
    assert [(each["code"], each["name"]) for each in answer] == [("NO_REVERSE", "acme/0001_one")]
    host.manage("compute_check_migrations", "--ignore", "NO_REVERSE")


def test_advice_on_one_shipped_migration_can_be_left_out_and_a_code_that_is_none_is_refused(host: Host) -> None:
    host.plugin("acme", m0001_one=run_sql("SELECT 1"), m0002_two=run_sql("SELECT 2"))
    ignoring = ("compute_check_migrations", "--ignore", "acme/0001_one:NO_REVERSE", "--format", "json")
    assert [each["name"] for each in host.manage(*ignoring, exit_code=1).json()] == ["acme/0002_two"]
    host.manage(*ignoring, "--ignore", "acme/0002_two:NO_REVERSE")
    err = host.manage("compute_check_migrations", "--ignore", "acme/0001_one:NOTHING", exit_code=2).err
    assert "'acme/0001_one:NOTHING' ends in no code; the codes are BIG_LOCK, " in err


#: Advice on our own modules that we do not follow.
ACCEPTED = (
    # Their tables are made in the same release, so that they are empty wherever a release brings both.
    "core/0006_pages:BIG_LOCK",
    "iam/0004_pages:BIG_LOCK",
)


def test_a_host_is_advised_on_its_own_modules_and_we_on_ours(host: Host) -> None:
    host.apps += ["compute_modules.tenancy", "compute_modules.iam"]
    host.configure()
    assert host.manage("compute_check_migrations").out == "Nothing to advise.\n"
    ignoring = [word for accepted in ACCEPTED for word in ("--ignore", accepted)]
    ours = ("compute_check_migrations", "core", "tenancy", "iam", "--format", "json")
    assert host.manage(*ours, *ignoring, exit_code=None).json() == []
    # Nothing is accepted that there is no advice on.
    found = {f"{each['name']}:{each['code']}" for each in host.manage(*ours, exit_code=1).json()}
    assert found == set(ACCEPTED)
