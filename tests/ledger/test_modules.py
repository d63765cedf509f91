"""``compute_module``: list, show, add-check and remove; and what doctor finds about migrations."""

from __future__ import annotations

import psycopg
import pytest

from tests.ledger.catalog import snapshot
from tests.ledger.host import Host, run_sql, table

MODEL = 'migrations.CreateModel("One", [("id", models.BigAutoField(primary_key=True, serialize=False))]),'

#: Everything of the plugin acme, by name.
ACME = "plg\\_acme%"

SERVING = """
from better_compute import DONE, Catalog, Reconciler

class Sweep(Reconciler):
    name = "acme.sweep"
    def run(self, ctx, key):
        return DONE
"""


def with_model(host: Host, *more: str) -> None:
    """A plugin that has a model and the migration that makes it."""
    folder = host.plugin("acme", m0001_one=MODEL + "".join(more))
    folder.parent.joinpath("models.py").write_text(
        "from django.db import models\n\nclass One(models.Model):\n    id = models.BigAutoField(primary_key=True)\n"
    )


def test_removal_takes_tables_rows_content_types_and_permissions(host: Host) -> None:
    with_model(host)
    host.manage("compute_migrate")
    assert host.rows("SELECT count(*) FROM django_content_type WHERE app_label = 'plg_acme'") == [(1,)]
    host.manage("compute_module", "remove", "acme", "--yes")
    assert not host.has_table("plg_acme_one")
    assert host.ledger("acme") == [("acme/0001_one", "applied"), ("acme/0001_one", "removed")]
    assert host.rows("SELECT count(*) FROM django_content_type WHERE app_label = 'plg_acme'") == [(0,)]
    assert host.rows("SELECT count(*) FROM auth_permission WHERE codename LIKE '%\\_one'") == [(0,)]
    assert host.rows("SELECT count(*) FROM django_migrations WHERE app = 'plg_acme'") == [(0,)]


def test_removal_takes_work_leases_pauses_and_what_was_granted(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    folder.parent.joinpath("reconcilers.py").write_text(SERVING)
    path = folder.parent / "apps.py"
    path.write_text(path.read_text() + "    from better_compute import Catalog\n")
    path.write_text(path.read_text() + '    catalog = Catalog(actions=["compute:acme:poke"])\n')
    host.manage("compute_migrate")
    host.run(
        "INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at)"
        " SELECT kind, 'k', -1, compute_now(), compute_now() FROM unnest(ARRAY['acme.sweep', 'beta.sweep']) AS kind"
    )
    host.run("INSERT INTO compute_leases (name) VALUES ('singleton:acme.sweep'), ('shard:1')")
    host.run("INSERT INTO compute_pauses (scope, paused_by, paused_at) VALUES ('kind:acme.sweep', 'me', compute_now())")
    host.run("INSERT INTO auth_group (name) VALUES ('operators')")
    host.run(
        "INSERT INTO auth_group_permissions (group_id, permission_id)"
        " SELECT g.id, p.id FROM auth_group g, auth_permission p WHERE p.codename IN ('acme:poke', 'work:requeue')"
    )
    plan = host.manage("compute_module", "remove", "acme", "--plan", "--format", "json").json()
    assert plan["rows"] == {"work": 1, "leases": 1, "pauses": 1}
    assert plan["permissions"] == ["acme:poke"]
    out = host.manage("compute_module", "remove", "acme", "--yes").out
    assert "Rows of its reconcilers: 1 work, 1 leases, 1 pauses. Events and audit records stay." in out
    assert host.rows("SELECT kind FROM compute_work") == [("beta.sweep",)]
    assert host.rows("SELECT name FROM compute_leases") == [("shard:1",)]
    assert host.rows("SELECT count(*) FROM compute_pauses") == [(0,)]
    assert host.rows(
        "SELECT p.codename FROM auth_group_permissions gp JOIN auth_permission p ON p.id = gp.permission_id"
    ) == [("work:requeue",)]
    assert host.rows("SELECT count(*) FROM auth_permission WHERE codename = 'acme:poke'") == [(0,)]


def test_a_module_that_was_never_migrated_can_be_planned_and_removed(host: Host) -> None:
    with_model(host)
    out = host.manage("compute_module", "remove", "acme", "--yes").out
    assert "Removed acme: migrations none." in out


def test_a_module_comes_back_with_the_same_schema(host: Host) -> None:
    more = (
        'migrations.AddField("one", "kind", models.CharField(max_length=9, db_default="a", db_index=True)),'
        'migrations.AddConstraint("one", models.CheckConstraint(name="plg_acme_kind",'
        ' condition=models.Q(kind__gt=""))),'
    )
    trigger = run_sql(
        "CREATE FUNCTION plg_acme_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        "CREATE TRIGGER plg_acme_t BEFORE INSERT ON plg_acme_raw FOR EACH ROW EXECUTE FUNCTION plg_acme_f()",
        "DROP FUNCTION plg_acme_f() CASCADE",
    )
    with_model(host, more, table("plg_acme_raw"), trigger)
    host.manage("compute_migrate")
    before = snapshot(host, ACME)
    host.manage("compute_module", "remove", "acme", "--yes")
    assert snapshot(host, ACME) == []
    host.manage("compute_migrate")
    assert snapshot(host, ACME) == before


def test_an_irreversible_module_loses_the_tables_of_its_models(host: Host) -> None:
    with_model(host, run_sql("SELECT 1"))
    host.manage("compute_migrate")
    result = host.manage("compute_module", "remove", "acme", "--yes")
    assert "acme/0001_one cannot be reversed" in result.out
    assert not host.has_table("plg_acme_one")
    assert host.ledger("acme")[-1] == ("acme/0001_one", "removed")


def test_a_removal_plan_changes_nothing(host: Host) -> None:
    with_model(host)
    host.manage("compute_migrate")
    answer = host.manage("compute_module", "remove", "acme", "--plan", "--format", "json").json()
    assert answer == {
        "migrations": ["acme/0001_one"],
        "tables": ["plg_acme_one"],
        "irreversible": [],
        "rows": {"work": 0, "leases": 0, "pauses": 0},
        "permissions": [],
        "done": False,
    }
    assert host.has_table("plg_acme_one")


def test_a_module_that_another_needs_is_not_removed(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    folder = host.plugin("beta", m0001_one=table("plg_beta_one"))
    host.migration(folder, "0001_one", table("plg_beta_one"), [("plg_acme", "0001_one")])
    host.manage("compute_migrate")
    err = host.manage("compute_module", "remove", "acme", "--yes", exit_code=2).err
    assert "Module 'acme' is needed by beta. Remove these first." in err
    assert host.has_table("plg_acme_one")


@pytest.mark.parametrize("reverse", [True, False], ids=["reversible", "irreversible"])
@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("CREATE VIEW of_the_host AS SELECT id FROM plg_acme_gadget", "view of_the_host depends on table"),
        (
            "CREATE TABLE of_the_host (gadget bigint REFERENCES plg_acme_gadget)",
            "constraint of_the_host_gadget_fkey on table of_the_host depends on table plg_acme_gadget",
        ),
    ],
    ids=["view", "reference"],
)
def test_what_else_stands_on_a_modules_tables_is_named_and_does_not_go_with_it(
    host: Host, reverse: bool, other: str, told: str
) -> None:
    gadgets = 'migrations.CreateModel("Gadget", [("id", models.BigAutoField(primary_key=True))]),'
    host.plugin("acme", m0001_one=gadgets, m0002_two=run_sql("SELECT 1", "SELECT 1" if reverse else None))
    host.manage("compute_migrate")
    host.run(other)
    err = host.manage("compute_module", "remove", "acme", "--yes", exit_code=4 if reverse else 2).err
    assert "Traceback" not in err
    assert told in err
    assert host.has_table("of_the_host")
    assert host.has_table("plg_acme_gadget")
    host.run(f"DROP {'VIEW' if 'VIEW' in other else 'TABLE'} of_the_host")
    host.manage("compute_module", "remove", "acme", "--yes")
    assert not host.has_table("plg_acme_gadget")


def test_the_core_and_unknown_modules_are_not_removed(host: Host) -> None:
    host.manage("compute_migrate")
    assert "The core cannot be removed" in host.manage("compute_module", "remove", "core", "--yes", exit_code=2).err
    assert "is not hosted here" in host.manage("compute_module", "remove", "nosuch", "--yes", exit_code=2).err


def test_list_and_show_tell_what_is_hosted_and_left_behind(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.plugin("beta", m0001_one=table("plg_beta_one"))
    host.manage("compute_migrate")
    host.apps.remove("beta_app")
    host.configure()
    answer = host.manage("compute_module", "list", "--format", "json").json()
    assert [module["name"] for module in answer["modules"]] == ["core", "acme"]
    assert answer["modules"][1]["version"] == "3.1"
    assert answer["orphans"] == {"beta": 1}
    shown = host.manage("compute_module", "show", "acme", "--format", "json").json()
    assert shown["applied"] == ["acme/0001_one"]
    found = host.manage("doctor", "--format", "json", exit_code=None).json()["findings"]
    assert "migrations.orphans" in [finding["check"] for finding in found]


def test_add_check_plans_an_app_that_is_not_installed_yet(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.apps.remove("acme_app")
    host.configure()
    out = host.manage("compute_module", "add-check", "acme_app").out
    assert "acme/0001_one" in out
    assert "acme_app can be added to INSTALLED_APPS." in out
    assert not host.has_table("plg_acme_one")


def test_add_check_explains_an_app_that_breaks_a_rule(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "Second", table("plg_acme_two"), [("plg_acme", "0001_one")])
    host.apps.remove("acme_app")
    host.configure()
    err = host.manage("compute_module", "add-check", "acme_app", exit_code=2).err
    assert "acme_app cannot be added" in err
    assert "compute.E010" in err


def doctor(host: Host) -> dict[str, str]:
    """What doctor finds, by check."""
    found = host.manage("doctor", "--format", "json", exit_code=None).json()["findings"]
    return {finding["check"]: finding["message"] for finding in found}


def test_doctor_names_drift_and_its_mend(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    assert "migrations.drift" not in doctor(host)
    path = folder / "0001_one.py"
    path.write_text(path.read_text().replace("bigint", "integer"))
    assert "acme/0001_one: its source is not the one that was applied" in doctor(host)["migrations.drift"]


def test_doctor_names_interrupted_migrations_and_invalid_indexes(host: Host) -> None:
    host.plugin("acme", m0001_one=MODEL)
    host.manage("compute_migrate")
    host.run(
        "INSERT INTO compute_migrations (owner, name, action, checksum, version)"
        " VALUES ('acme', 'acme/0002_index', 'started', repeat('0', 64), '1')"
    )
    host.run("INSERT INTO plg_acme_one DEFAULT VALUES")
    host.run("INSERT INTO plg_acme_one DEFAULT VALUES")
    # Concurrently made and failed: PostgreSQL leaves the index behind, invalid.
    with pytest.raises(psycopg.errors.UniqueViolation):
        host.run("CREATE UNIQUE INDEX CONCURRENTLY half ON plg_acme_one ((id * 0))")
    found = doctor(host)
    assert "acme/0002_index" in found["migrations.interrupted"]
    assert "half on plg_acme_one" in found["indexes.invalid"]


def test_doctor_names_a_command_that_shadows_migrate(host: Host) -> None:
    folder = host.root / "other" / "management" / "commands"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parent.parent):
        package.joinpath("__init__.py").write_text("")
    folder.joinpath("migrate.py").write_text("from django.core.management.commands.migrate import Command\n")
    host.manage("compute_migrate")
    host.apps.insert(0, "other")
    host.configure()
    assert "is the command of 'other'" in doctor(host)["migrations.shadowed"]
