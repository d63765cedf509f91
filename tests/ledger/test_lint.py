"""Advice for module authors, one test a rule."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models.functions import Now

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


def test_the_command_exits_1_with_advice_and_0_without(host: Host) -> None:
    host.plugin("acme", m0001_one=run_sql("SELECT 1"))
    answer = host.manage("compute_check_migrations", "--format", "json", exit_code=1).json()
    assert [(each["code"], each["name"]) for each in answer] == [("NO_REVERSE", "acme/0001_one")]
    host.manage("compute_check_migrations", "--ignore", "NO_REVERSE")
