"""Findings, on a real database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from better_compute import Catalog, ComputeError, Finding, Report, compute, doctor, ledger, registry
from better_compute.contract.module import ModuleSpec
from better_compute.store import clock, session
from tests.registry.specs import method, module, plugin, reconciler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("made_up_modules")]

HERE = "tests.doctor"


def quiet(name: str = "gadgets", **fields: Any) -> ModuleSpec:
    """A module of which doctor has nothing to say but what the fields bring."""
    return module(name, path=HERE, **fields)


def execute(sql: str, params: Any = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def findings(*specs: ModuleSpec) -> list[Finding]:
    with registry.override(*specs):
        return doctor.report().findings


def raising(failure: BaseException) -> Callable[[Any], list[Finding]]:
    def self_check(ctx: Any) -> list[Finding]:
        raise failure

    return self_check


def finding(check: str = "gadgets.size", severity: Any = "info") -> Finding:
    return Finding(check=check, severity=severity, message="m", fix="f")


def test_a_healthy_installation_has_nothing_to_report() -> None:
    with registry.override(quiet()):
        assert doctor.report() == Report(ok=True, findings=[])


def test_self_checks_run_in_hosted_order() -> None:
    specs = [
        plugin(path=HERE, self_check=lambda ctx: [finding("acme.a")]),
        quiet("zoo", self_check=lambda ctx: iter([finding("zoo.a"), finding("zoo.b")])),
        quiet("inventory", self_check=lambda ctx: [finding("inventory.a")]),
    ]
    assert [each.check for each in findings(*specs)] == ["inventory.a", "zoo.a", "zoo.b", "acme.a"]


@pytest.mark.parametrize(("severity", "ok"), [("error", False), ("warning", True), ("info", True)])
def test_only_an_error_makes_the_report_not_ok(severity: str, ok: bool) -> None:
    with registry.override(quiet(self_check=lambda ctx: [finding(severity=severity)])):
        assert doctor.report().ok is ok


def test_a_self_check_that_answers_none_has_nothing_to_report() -> None:
    assert findings(quiet(self_check=lambda ctx: None)) == []


def test_a_self_check_that_throws_is_one_error_and_the_others_still_run() -> None:
    broken = quiet("ape", self_check=raising(ValueError("no bananas\nand a second line")))
    found = findings(broken, quiet("zoo", self_check=lambda ctx: [finding("zoo.a")]))
    assert found == [
        Finding(
            check="module.ape",
            severity="error",
            message="The self-check of module 'ape' failed. ValueError: no bananas",
            fix="See this process's log for the traceback, and mend the module's self_check.",
        ),
        finding("zoo.a"),
    ]


def test_a_self_check_cannot_write() -> None:
    def self_check(ctx: Any) -> list[Finding]:
        ctx.sql.query("UPDATE compute_clock SET anchored_at = NULL")
        return []

    [found] = findings(quiet(self_check=self_check))
    assert found.check == "module.gadgets"
    assert found.message == (
        "The self-check of module 'gadgets' failed. ReadOnlySqlTransaction (SQLSTATE 25006): cannot execute UPDATE in "
        "a read-only transaction"
    )


def test_a_self_check_that_hangs_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("better_compute.store.health.TIMEOUT", "SET LOCAL statement_timeout = 1000")
    [found] = findings(quiet(self_check=lambda ctx: ctx.sql.query("SELECT pg_sleep(30)").rows))
    assert found.message.endswith("QueryCanceled (SQLSTATE 57014): canceling statement due to statement timeout")
    assert found.fix.startswith("See in pg_stat_activity who holds a lock or keeps the database busy")


def test_a_lock_that_holds_up_the_cores_own_checks_is_told_once_and_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, owner_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("better_compute.store.health.TIMEOUT", "SET LOCAL statement_timeout = 300")
    with psycopg.connect(owner_url) as other:
        other.execute("LOCK TABLE compute_work IN ACCESS EXCLUSIVE MODE")
        found = findings(quiet())
    assert [(each.check, each.message) for each in found] == [
        (
            "module.core",
            "The self-check of module 'core' failed. "
            "QueryCanceled (SQLSTATE 57014): canceling statement due to statement timeout",
        )
    ]
    assert found[0].fix.startswith("See in pg_stat_activity who holds a lock or keeps the database busy")
    assert caplog.text == ""


def test_neither_parameters_nor_secrets_are_told() -> None:
    def self_check(ctx: Any) -> list[Finding]:
        ctx.sql.query("SELECT %s::int", ["hunter2"])
        return []

    secret = ConnectionError("postgresql://bc:hunter2@db/x refused, password=hunter2 token: hunter2 Bearer hunter2")
    found = findings(quiet("a", self_check=self_check), quiet("b", self_check=raising(secret)))
    assert [each.message for each in found] == [
        "The self-check of module 'a' failed. InvalidTextRepresentation (SQLSTATE 22P02)",
        "The self-check of module 'b' failed. ConnectionError: postgresql://...@db/x refused, password=... "
        "token: ... Bearer ...",
    ]


@pytest.mark.parametrize("answer", [["no finding"], [finding(severity="fatal")], 5])
def test_a_self_check_that_answers_something_else_is_an_error(answer: Any) -> None:
    assert [each.check for each in findings(quiet(self_check=lambda ctx: answer))] == ["module.gadgets"]


def test_settings_of_one_check_do_not_reach_the_next_nor_the_connection() -> None:
    findings(quiet(self_check=lambda ctx: []))
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("off",)


def test_a_report_can_be_made_inside_a_call() -> None:
    from better_compute.store import transaction

    broken = quiet("ape", self_check=lambda ctx: ctx.sql.query("SELECT nothing FROM nowhere").rows)
    with registry.override(broken), transaction.transaction():
        execute("UPDATE compute_clock SET anchored_at = anchored_at")
        report = doctor.report()
        execute("UPDATE compute_clock SET anchored_at = anchored_at")
    assert [each.message for each in report.findings] == [
        "The self-check of module 'ape' failed. UndefinedTable (SQLSTATE 42P01): relation \"nowhere\" does not exist"
    ]


def test_the_facade_gives_the_same_answer() -> None:
    with registry.override(quiet(self_check=lambda ctx: [finding()])):
        assert compute.self_check() == doctor.report()


def test_a_report_on_one_module_leaves_out_the_others_and_the_core() -> None:
    with registry.override(
        quiet("a", self_check=lambda ctx: [finding("a.x")]), quiet("b", self_check=raising(OSError()))
    ):
        assert [each.check for each in doctor.report("a").findings] == ["a.x"]
        with pytest.raises(ComputeError, match="No hosted module is named 'c'"):
            doctor.report("c")


def test_broken_rules_are_reported_as_findings() -> None:
    assert findings(quiet(requires=("nothing",))) == [
        Finding(
            check="compute.E003",
            severity="error",
            message="Module 'gadgets': it requires 'nothing', which is not hosted.",
            fix="Add that module's app to INSTALLED_APPS, or correct `requires`.",
        )
    ]


def test_a_silenced_check_is_left_out() -> None:
    undeclared = quiet(
        catalog=Catalog(actions=["compute:fleet:read"]),
        methods=(method(action="compute:fleet:read", module="gadgets", plugin_id=None),),
    )
    with override_settings(SILENCED_SYSTEM_CHECKS=["compute.W073"]):
        assert findings(undeclared) == []


def test_an_undeclared_method_is_a_warning_of_its_own_name() -> None:
    undeclared = quiet(
        catalog=Catalog(actions=["compute:fleet:read"]),
        methods=(method(action="compute:fleet:read", module="gadgets", plugin_id=None),),
    )
    with registry.override(undeclared):
        report = doctor.report()
    assert report.ok
    assert [(each.check, each.severity) for each in report.findings] == [("catalog.undeclared", "warning")]


def test_a_pending_module_is_reported_and_its_self_check_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "pending", lambda using: ["zoo/0001_a", "zoo/0002_b"])
    found = findings(
        quiet("ape", self_check=lambda ctx: [finding("ape.a")]), quiet("zoo", self_check=raising(OSError()))
    )
    assert found == [
        Finding(
            check="migrations.pending",
            severity="error",
            message="2 migrations are pending: zoo/0001_a, zoo/0002_b.",
            fix="Run `manage.py compute_migrate`.",
            count=2,
        ),
        finding("ape.a"),
    ]


def test_an_unreachable_database_is_one_finding() -> None:
    connection.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", "1")
        [found] = findings(quiet(self_check=raising(OSError())))
    assert (found.check, found.severity) == ("database.unreachable", "error")
    assert "Connection refused" in found.message
    assert found.fix == "Start PostgreSQL or correct DATABASES['default'], then run `manage.py compute_migrate`."


SYNC = "gadgets.sync"


def queue(kind: str = SYNC, key: str = "k", due: timedelta = timedelta(0), attempts: int = 0) -> None:
    execute(
        """INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at, attempts, last_error, last_error_at)
           VALUES (%s, %s, -1, compute_now() - %s, compute_now(), %s, %s, CASE WHEN %s > 0 THEN compute_now() END)""",
        [kind, key, due, attempts, "boom" if attempts else None, attempts],
    )


def hold(lease: str, *, live: bool = True) -> None:
    execute(
        """INSERT INTO compute_workers (id, role, host, pid, started_at, expires_at)
           VALUES ('w1', 'controllers', 'h', 1, compute_now(), compute_now() + %s) ON CONFLICT DO NOTHING""",
        [timedelta(minutes=1 if live else -1)],
    )
    execute(
        """INSERT INTO compute_leases (name, holder, epoch) VALUES (%s, 'w1', 1)
           ON CONFLICT (name) DO UPDATE SET holder = 'w1'""",
        [lease],
    )


def sync(**fields: Any) -> ModuleSpec:
    return quiet(reconcilers=(reconciler(SYNC, **fields),))


def test_work_that_is_due_for_minutes_is_a_warning() -> None:
    hold(f"singleton:{SYNC}")
    queue(due=timedelta(minutes=3, seconds=20))
    [found] = findings(sync())
    assert (found.check, found.severity, found.count) == ("work.oldest-due", "warning", 1)
    assert found.message.startswith("gadgets.sync: 1 key is due, the oldest for 3 min 2")


def test_work_that_is_due_for_hours_is_an_error() -> None:
    hold(f"singleton:{SYNC}")
    queue(due=timedelta(hours=2, minutes=5))
    queue(key="other")
    [found] = findings(sync())
    assert (found.severity, found.count) == ("error", 2)
    assert found.message == "gadgets.sync: 2 keys are due, the oldest for 2 h 5 min."


def test_work_that_is_due_for_seconds_is_nothing_to_report() -> None:
    hold(f"singleton:{SYNC}")
    queue(due=timedelta(seconds=30))
    assert findings(sync()) == []


def test_keys_that_keep_failing_are_named() -> None:
    hold(f"singleton:{SYNC}")
    for key, attempts in (("a", 5), ("b", 9), ("c", 4), ("d", 6), ("e", 7)):
        queue(key=key, attempts=attempts)
    [found] = findings(sync())
    assert (found.check, found.severity, found.count) == ("work.stuck", "warning", 4)
    assert found.message == "gadgets.sync: 4 keys are failing, up to 9 times in a row: 'b', 'e', 'd' and more."


def running(note: str) -> None:
    hold(f"singleton:{SYNC}")
    execute("UPDATE compute_workers SET inflight = %s::jsonb WHERE id = 'w1'", [note])


def test_keys_that_run_for_longer_than_they_should_are_named_with_their_process() -> None:
    hold(f"singleton:{SYNC}")
    execute(
        """UPDATE compute_workers SET inflight = jsonb_build_array(
             jsonb_build_object('kind', %s::text, 'keys', '["a", "b"]'::jsonb, 'ids', '[1, 2]'::jsonb,
                                'since', compute_now() - interval '200 seconds'),
             jsonb_build_object('kind', %s::text, 'keys', '["soon"]'::jsonb, 'ids', '[3]'::jsonb,
                                'since', compute_now() - interval '5 seconds'))""",
        [SYNC, SYNC],
    )
    [found] = findings(sync())
    assert (found.check, found.severity, found.count) == ("work.long-running", "warning", 2)
    assert found.message.startswith("gadgets.sync: 2 keys have been running for up to 3 min 2")
    assert found.message.endswith(" s on h:1: 'a', 'b'; a run should end within 1 min 0 s.")
    assert "SYNC_AGAIN" in found.fix


@pytest.mark.parametrize(
    "note",
    ["7", '[{"kind": "n", "keys": ["k"], "ids": [1]}]', '[{"kind": "n", "keys": ["k"], "since": "long ago"}]', "[[]]"],
)
def test_a_note_that_says_no_time_is_nothing_to_report(note: str) -> None:
    running(note)
    assert findings(sync()) == []


def test_a_transaction_that_stays_open_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("better_compute.doctor.work.OLD_SNAPSHOT", timedelta(0))
    with session.connect("default", "forgotten", {}) as other, other.transaction():
        backend = other.info.backend_pid
        other.execute("INSERT INTO compute_leases (name) VALUES ('x')")
        found = [each for each in findings(quiet()) if each.check == "database.old-snapshot"]
        other.execute("DELETE FROM compute_leases WHERE name = 'x'")
    [one] = found
    assert one.severity == "warning"
    assert f"session {backend} (forgotten, idle in transaction)" in one.message
    assert "pg_terminate_backend" in one.fix


def test_a_transaction_that_is_young_is_nothing_to_report() -> None:
    with session.connect("default", "young", {}) as other, other.transaction():
        other.execute("SELECT txid_current()")
        assert findings(quiet()) == []


def test_work_of_a_kind_that_no_module_runs_is_a_warning() -> None:
    queue(kind="gone.sync")
    [found] = findings(quiet())
    assert (found.check, found.severity, found.count) == ("work.unknown-kind", "warning", 1)
    assert found.message == "gone.sync: 1 key is queued, but no hosted module has this reconciler."


def test_a_singleton_without_a_live_worker_is_a_warning() -> None:
    assert [(each.check, each.severity, each.message, each.count) for each in findings(sync())] == [
        (
            "leases.unheld",
            "warning",
            "controllers: 1 of 1 leases have no holder, and no live worker has the role: singleton:gadgets.sync.",
            1,
        )
    ]


def test_a_lease_of_a_dead_worker_is_unheld() -> None:
    hold(f"singleton:{SYNC}", live=False)
    assert [each.check for each in findings(sync())] == ["leases.unheld"]


def test_shards_without_a_holder_are_counted() -> None:
    for shard in range(2, 256):
        hold(f"shard:{shard}")
    assert [each.message for each in findings(sync(shard_by="node"))] == [
        "controllers: 2 of 256 leases have no holder: shard:0, shard:1."
    ]


def test_the_scheduler_has_shards_of_its_own() -> None:
    [found] = findings(sync(shard_by="pool", role="scheduler"))
    assert found.message.startswith("scheduler: 256 of 256 leases have no holder")
    assert "scheduler/shard:0" in found.message


def test_another_default_isolation_is_an_error() -> None:
    execute("SET default_transaction_isolation = 'repeatable read'")
    try:
        assert [(each.check, each.severity, each.message) for each in findings(quiet())] == [
            (
                "database.isolation",
                "error",
                "Transactions are REPEATABLE READ by default; fences and tenant states need READ COMMITTED.",
            )
        ]
    finally:
        execute("RESET default_transaction_isolation")


def test_an_offset_of_the_clock_is_a_warning() -> None:
    clock.set_offset(timedelta(hours=1))
    assert [(each.check, each.message) for each in findings(quiet())] == [
        ("clock.offset", "compute_now() is set 3600.0 s off the database's clock.")
    ]


def test_a_difference_of_the_clocks_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    from better_compute.doctor import clocks

    class Late(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(UTC) - timedelta(seconds=60)

    monkeypatch.setattr(clocks, "datetime", Late)
    [found] = findings(quiet())
    assert found.check == "clock.difference"
    assert found.message == "The database's clock is 60.0 s ahead of this process's."


def process(fingerprint: str, modules: str = '["gadgets"]', connections: int = 0, seen: str = "0") -> None:
    execute(
        """INSERT INTO compute_processes
             (id, role, host, pid, fingerprint, modules, connections, started_at, seen_at)
           VALUES (gen_random_uuid(), 'api', 'h1', 7, %s, %s::jsonb, %s, compute_now(),
                   compute_now() - %s::interval)""",
        [fingerprint, modules, connections, seen],
    )


def test_a_live_process_that_hosts_another_set_is_a_warning() -> None:
    process("other", '["gadgets", "zoo"]')
    process("old", seen="10 minutes")
    [found] = findings(quiet(), quiet("ape"))
    assert (found.check, found.severity, found.count) == ("registry.fingerprint", "warning", 1)
    assert found.message == "1 live process hosts another set of modules: api h1:7 with zoo, without ape."


def test_a_live_process_that_hosts_the_same_is_nothing_to_report() -> None:
    with registry.override(quiet()):
        process(registry.current().fingerprint)
        assert doctor.report().findings == []


@pytest.mark.parametrize(("share", "severity"), [(0.5, None), (0.9, "warning"), (1.1, "error")])
def test_connections_are_summed_against_what_the_server_has(share: float, severity: str | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        )
        [available] = cursor.fetchone()
    with registry.override(quiet()):
        process(registry.current().fingerprint, connections=int(available * share))
        found = doctor.report().findings
    assert [(each.check, each.severity) for each in found] == ([("connections.sum", severity)] if severity else [])


def test_a_workers_connections_are_counted_once() -> None:
    from better_compute.store import health

    process("f", connections=3)
    execute(
        """INSERT INTO compute_workers (id, role, host, pid, started_at, expires_at, connections) VALUES
           ('w1', 'controllers', 'h1', 7, compute_now(), compute_now() + interval '1 minute', 5),
           ('scheduler/w1', 'scheduler', 'h1', 7, compute_now(), compute_now() + interval '1 minute', 5)"""
    )
    assert health.connection_budget("default").stated == 5


def test_migrations_that_this_role_may_not_read_are_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def pending(using: str) -> list[str]:
        execute("CREATE TABLE never ()")
        return []

    monkeypatch.setattr(ledger, "pending", pending)
    [found] = findings(quiet(self_check=raising(OSError())))
    assert (found.check, found.severity) == ("migrations.unreadable", "error")
    assert found.fix == "Run `manage.py compute_migrate` as the owner; it grants COMPUTE['APP_ROLE'] what it needs."


def test_a_standby_is_an_error() -> None:
    # Found before PostgreSQL's own, as long as the session looks there first.
    execute("CREATE FUNCTION pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'")
    execute("SET search_path = public, pg_catalog")
    try:
        assert [(each.check, each.severity) for each in findings(quiet())] == [("database.standby", "error")]
    finally:
        execute("DROP FUNCTION public.pg_is_in_recovery()")
        execute("RESET search_path")
