"""Partitions are made ahead and dropped whole, by a role that may change no table, and never too early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import override_settings
from psycopg import errors

from better_compute import ComputeError, compute, conf, doctor
from better_compute.store import clock, grants, transaction
from better_compute.store.work import WorkRow
from better_compute.testing import clear_store

pytestmark = pytest.mark.django_db(transaction=True)

OUTBOX, AUDIT = "compute_outbox", "compute_audit_events"
PUBLISH = "INSERT INTO compute_outbox (type, tenant_id, subject, data) VALUES ('a.b', 't', 's', '{}')"
RECORD = (
    "INSERT INTO compute_audit_events (id, at, tenant_id, principal, method, action, resource_type, resource_id,"
    " outcome, request_id, canonical, salt, leaf_hash) VALUES (gen_random_uuid(), compute_now(), 't', 'p', 'm', 'a',"
    " 'r', 'i', 'allowed', 'q', '{}', decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'))"
)
MIDNIGHT = datetime(2031, 3, 15, tzinfo=UTC)


def run(statement: str, *params: Any) -> list[tuple[Any, ...]]:
    """As the owner."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params or None)
        return cursor.fetchall() if cursor.description else []


def set_clock(to: datetime) -> None:
    clock.set_offset(timedelta(0))
    clock.set_offset(to - clock.now())


def partitions(relation: str = OUTBOX) -> list[str]:
    found = run("SELECT name FROM compute_partitions(%s) WHERE NOT is_default ORDER BY from_at", relation)
    return [name.removeprefix(f"{relation}_p") for (name,) in found]


@pytest.fixture(autouse=True)
def _bare() -> Iterator[None]:
    """Neither table has a partition but the default one, and it is noon of a day of its own."""

    def forget() -> None:
        for relation in (OUTBOX, AUDIT):
            for (name,) in run("SELECT name FROM compute_partitions(%s) WHERE NOT is_default", relation):
                run(f'DROP TABLE "{name}"')
        run("DELETE FROM compute_retention_holds")

    clear_store()
    forget()
    set_clock(MIDNIGHT + timedelta(hours=12))
    yield
    clock.set_offset(timedelta(0))
    forget()


@pytest.fixture
def app(app_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of the role that serves."""
    with psycopg.connect(app_url, autocommit=True) as session:
        yield session


@pytest.fixture
def steps(app: psycopg.Connection[Any]) -> Callable[..., list[tuple[str, str]]]:
    """Take steps as the role that serves until there is nothing to do."""

    def take(relation: str = OUTBOX, keep: timedelta | None = None) -> list[tuple[str, str]]:
        taken: list[tuple[str, str]] = []
        while row := app.execute("SELECT * FROM compute_retention_step(%s, %s)", [relation, keep]).fetchone():
            taken.append((row[0], (row[1] or "").removeprefix(f"{relation}_p")))
            assert len(taken) < 100
            if row[0] == "BUSY":
                break
        return taken

    return take


Steps = Callable[..., list[tuple[str, str]]]


def test_partitions_are_made_for_the_present_and_ahead(steps: Steps) -> None:
    assert steps() == [("MADE", f"203103{day}") for day in range(15, 23)]
    assert steps(AUDIT) == [("MADE", "203103"), ("MADE", "203104"), ("MADE", "203105")]
    run(PUBLISH)
    assert run("SELECT tableoid::regclass::text FROM compute_outbox") == [("compute_outbox_p20310315",)]
    set_clock(MIDNIGHT + timedelta(days=1))
    run(PUBLISH)
    assert steps() == [("MADE", "20310323")]
    assert run("SELECT count(DISTINCT tableoid), count(*) FROM compute_outbox") == [(2, 2)]


def test_a_row_on_a_boundary_finds_its_partition(steps: Steps) -> None:
    steps(AUDIT)
    for at in ("2031-03-31 23:59:59.999999+00", "2031-04-01 00:00:00+00"):
        run(RECORD.replace("compute_now()", f"'{at}'"))
    found = run("SELECT tableoid::regclass::text FROM compute_audit_events ORDER BY at")
    assert found == [("compute_audit_events_p203103",), ("compute_audit_events_p203104",)]


def test_rows_that_came_before_there_were_partitions_get_one_without_being_moved(steps: Steps) -> None:
    run(PUBLISH)
    set_clock(MIDNIGHT + timedelta(days=3, hours=1))
    run(PUBLISH)
    before = run("SELECT id, xid::text, created_at FROM compute_outbox ORDER BY id")
    assert steps()[0] == ("ROLLED", "20310315")
    assert run("SELECT from_at, to_at FROM compute_partitions('compute_outbox') ORDER BY from_at LIMIT 1") == [
        (MIDNIGHT, MIDNIGHT + timedelta(days=4))
    ]
    assert run("SELECT id, xid::text, created_at FROM compute_outbox ORDER BY id") == before
    assert run("SELECT count(*) FROM compute_outbox_default") == [(0,)]
    run(PUBLISH)
    assert run("SELECT count(*) FROM compute_outbox_p20310315") == [(3,)]


def test_rows_that_came_while_nobody_made_partitions_get_one_too(steps: Steps) -> None:
    steps()
    set_clock(MIDNIGHT + timedelta(days=20, hours=1))
    run(PUBLISH)
    assert run("SELECT count(*) FROM compute_outbox_default") == [(1,)]
    assert [did for did, _ in steps()] == ["ROLLED", *["MADE"] * 7]
    assert run("SELECT count(*) FROM compute_outbox_default") == [(0,)]


def test_a_row_of_a_strange_time_stops_nothing_else(steps: Steps) -> None:
    steps(AUDIT)
    run(RECORD.replace("compute_now()", "'2000-01-01'"))
    run(RECORD.replace("compute_now()", "'2100-01-01'"))
    set_clock(datetime(2031, 6, 2, tzinfo=UTC))
    assert steps(AUDIT) == [("MADE", "203106"), ("MADE", "203107"), ("MADE", "203108")]
    run(RECORD.replace("compute_now()", "'2031-09-05'"))
    set_clock(datetime(2031, 7, 6, tzinfo=UTC))
    assert steps(AUDIT, timedelta(days=95)) == [("DROPPED", "203103")]


@pytest.mark.parametrize("made", ["MADE", "ROLLED"])
def test_a_partition_is_guarded_like_the_default_one(steps: Steps, app: psycopg.Connection[Any], made: str) -> None:
    if made == "ROLLED":
        run(PUBLISH)
    assert steps()[0] == (made, "20310315")
    run(PUBLISH)
    names = ["compute_outbox_p20310315", "compute_outbox_default"]
    run(PUBLISH.replace("(type", "(created_at, type").replace("('a.b'", "('2200-01-01', 'a.b'"))
    for name in names:
        for statement in (f"UPDATE {name} SET type = 'x'", f"DELETE FROM {name}", f"TRUNCATE {name}"):
            with pytest.raises(errors.InsufficientPrivilege):
                app.execute(statement)  # type: ignore[arg-type]
            with pytest.raises(Exception, match="append-only"):
                run(statement)
        with pytest.raises(errors.InsufficientPrivilege):
            app.execute(PUBLISH.replace(OUTBOX, name))  # type: ignore[arg-type]
    assert len(app.execute("SELECT FROM compute_outbox").fetchall()) >= 2
    # compute_migrate would find nothing to take back.
    assert grants.differences(connection, app.info.user) == []
    assert run("SELECT count(DISTINCT indexrelid) FROM pg_index WHERE indrelid = %s::regclass", names[0]) == [(2,)]


def test_a_partition_is_dropped_when_all_of_it_is_old_enough(steps: Steps) -> None:
    steps()
    run(PUBLISH)
    for at, gone in ((timedelta(days=31, minutes=-5), []), (timedelta(days=31, seconds=1), ["20310315"])):
        set_clock(MIDNIGHT + at)
        assert [name for did, name in steps(OUTBOX, timedelta(days=30)) if did == "DROPPED"] == gone
    assert run("SELECT count(*) FROM compute_outbox") == [(0,)]


def test_the_role_that_serves_cannot_go_below_the_databases_floor(steps: Steps, app: psycopg.Connection[Any]) -> None:
    steps(AUDIT)
    set_clock(datetime(2031, 6, 29, tzinfo=UTC))
    for keep in (timedelta(0), timedelta(seconds=-1), timedelta(days=-10_000)):
        assert not [name for did, name in steps(AUDIT, keep) if did == "DROPPED"]
    set_clock(datetime(2031, 6, 30, 0, 0, 1, tzinfo=UTC))
    assert [name for did, name in steps(AUDIT, timedelta(0)) if did == "DROPPED"] == ["203103"]
    for statement in (
        "UPDATE compute_retention SET floor = '1 day'",
        "INSERT INTO compute_retention VALUES ('auth_user', 'date_joined', 'day', 1, '1 day')",
        "DELETE FROM compute_retention",
        "DELETE FROM compute_retention_holds",
        "INSERT INTO compute_retention_holds VALUES ('x', 'compute_outbox')",
        "UPDATE compute_retention_holds SET relation = 'compute_outbox'",
        "ALTER FUNCTION compute_retention_step(text, interval) SECURITY INVOKER",
        "SELECT compute_partition_made('compute_outbox', 'mine')",
        "CREATE TABLE compute_outbox_p1 PARTITION OF compute_outbox FOR VALUES FROM ('2001-01-01') TO ('2001-01-02')",
        "ALTER TABLE compute_outbox DETACH PARTITION compute_outbox_default",
        "DROP TABLE compute_audit_events_p203104",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            app.execute(statement)  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", ["auth_user", "compute_work", "compute_outbox; DROP TABLE x", "", None])
def test_it_drops_of_nothing_but_its_tables(app: psycopg.Connection[Any], relation: str | None) -> None:
    with pytest.raises(errors.InvalidParameterValue):
        app.execute("SELECT * FROM compute_retention_step(%s, '0')", [relation])


def test_a_callers_search_path_changes_nothing(app: psycopg.Connection[Any]) -> None:
    app.execute("CREATE TEMP TABLE compute_retention AS TABLE compute_retention")
    app.execute("UPDATE pg_temp.compute_retention SET floor = interval '0'")
    app.execute("SET search_path = pg_temp, public")
    for _ in range(3):
        app.execute("SELECT * FROM public.compute_retention_step('compute_audit_events', '0')")
    set_clock(datetime(2031, 6, 1, tzinfo=UTC))
    taken = [app.execute("SELECT * FROM public.compute_retention_step('compute_audit_events', '0')").fetchone()]
    while taken[-1]:
        taken.append(app.execute("SELECT * FROM public.compute_retention_step('compute_audit_events', '0')").fetchone())
    assert "DROPPED" not in [row[0] for row in taken if row]


def test_what_a_reader_has_not_handled_is_never_dropped(steps: Steps, app: psycopg.Connection[Any]) -> None:
    run("INSERT INTO compute_retention_holds (name, relation) VALUES ('events.webhooks', 'compute_outbox')")
    run("INSERT INTO compute_retention_holds VALUES ('events.stream', 'compute_outbox', '9223372036854775807')")
    steps()
    run(PUBLISH)
    set_clock(MIDNIGHT + timedelta(days=1))
    run(PUBLISH)
    set_clock(MIDNIGHT + timedelta(days=400))
    first, second = (row[0] for row in run("SELECT xid::text FROM compute_outbox ORDER BY id"))
    dropped = [name for did, name in steps(OUTBOX, timedelta(days=1)) if did == "DROPPED"]
    assert not {"20310315", "20310316"} & set(dropped)
    for position in (first, second):
        app.execute("UPDATE compute_retention_holds SET position = %s WHERE name = 'events.webhooks'", [position])
        steps(OUTBOX, timedelta(days=1))
    # The first row lies below where the reader is, the second does not.
    assert run("SELECT xid::text FROM compute_outbox") == [(second,)]


def test_a_table_in_use_is_left_for_later_and_holds_up_no_writer(steps: Steps, app_url: str, owner_url: str) -> None:
    steps()
    set_clock(MIDNIGHT + timedelta(days=40))
    steps()
    with psycopg.connect(app_url) as busy, psycopg.connect(app_url, autocommit=True) as writer:
        busy.execute(PUBLISH)  # type: ignore[arg-type]
        assert steps(OUTBOX, timedelta(days=1)) == [("BUSY", "")]
        writer.execute("SET statement_timeout = '5s'")
        writer.execute(PUBLISH)  # type: ignore[arg-type]
        busy.commit()
    assert steps(OUTBOX, timedelta(days=1))[0][0] == "DROPPED"


def test_two_steps_at_once_do_not_wait_for_each_other(steps: Steps, app_url: str) -> None:
    with psycopg.connect(app_url) as other:
        assert other.execute("SELECT did FROM compute_retention_step('compute_outbox')").fetchone() == ("MADE",)
        assert steps() == [("BUSY", "")]
        other.rollback()
    assert steps()[0] == ("MADE", "20310315")


def test_a_call_commits_while_its_partition_is_being_made(app_url: str) -> None:
    with psycopg.connect(app_url) as making, psycopg.connect(app_url, autocommit=True) as writer:
        making.execute("SELECT * FROM compute_retention_step('compute_outbox')")
        making.commit()
        making.execute("SELECT * FROM compute_retention_step('compute_outbox')")
        writer.execute("SET statement_timeout = '2s'")
        writer.execute(PUBLISH)  # type: ignore[arg-type]
        making.commit()


@pytest.fixture
def as_app_role(app_url: str) -> Iterator[Callable[[str], None]]:
    """Tick a reconciler with this process connected as the role that serves."""
    owner = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    serving = psycopg.conninfo.conninfo_to_dict(app_url)

    def tick(name: str) -> None:
        connection.close()
        connection.settings_dict.update(USER=serving["user"], PASSWORD=serving.get("password", ""))
        try:
            for key in compute.jobs[name].reconciler.periodic:
                with transaction.transaction():
                    transaction.enqueue([WorkRow(name, key.key, -1)])
            compute.jobs[name].tick()
        finally:
            connection.close()
            connection.settings_dict.update(owner)

    yield tick
    connection.settings_dict.update(owner)


Tick = Callable[[str], None]


def test_the_reconciler_keeps_what_the_settings_say(as_app_role: Tick) -> None:
    run(PUBLISH)
    run(RECORD)
    as_app_role("core.partition-retention")
    assert (len(partitions()), len(partitions(AUDIT))) == (8, 3)
    set_clock(MIDNIGHT + timedelta(days=60))
    with override_settings(COMPUTE={"RETENTION": {"OUTBOX_MS": 0, "AUDIT_MS": 0}}):
        as_app_role("core.partition-retention")
    assert run("SELECT (SELECT count(*) FROM compute_outbox), (SELECT count(*) FROM compute_audit_events)") == [(1, 1)]
    as_app_role("core.partition-retention")
    assert run("SELECT (SELECT count(*) FROM compute_outbox), (SELECT count(*) FROM compute_audit_events)") == [(0, 1)]
    set_clock(MIDNIGHT + timedelta(days=450))
    as_app_role("core.partition-retention")
    as_app_role("core.partition-retention")
    assert run("SELECT count(*) FROM compute_audit_events") == [(0,)]
    assert run("SELECT last_error FROM compute_work WHERE kind = 'core.partition-retention' AND last_error > ''") == []


def test_a_run_takes_a_bounded_number_of_steps(as_app_role: Tick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("better_compute.reconcilers.STEPS", 2)
    as_app_role("core.partition-retention")
    assert (partitions(), partitions(AUDIT)) == (["20310315", "20310316"], ["203103", "203104"])


def test_tokens_that_ended_long_ago_are_deleted(as_app_role: Tick) -> None:
    run(
        "INSERT INTO auth_user (id, password, is_superuser, username, first_name, last_name, email, is_staff,"
        " is_active, date_joined) VALUES (901, '', false, 'tess', '', '', '', false, true, now())"
    )
    ends = {"revoked": ("-91 days", None), "expired": (None, "-91 days"), "both": ("-1 day", "-91 days")}
    kept = {"live": (None, None), "fresh": ("-89 days", None), "future": (None, "1 day")}
    for label, (revoked, expires) in {**ends, **kept}.items():
        run(
            "INSERT INTO compute_tokens (id, digest, hint, label, user_id, revoked_at, expires_at) VALUES"
            " (gen_random_uuid(), sha256(%s::bytea), '', %s, 901,"
            " compute_now() + %s::interval, compute_now() + %s::interval)",
            label.encode(),
            label,
            revoked,
            expires,
        )
    as_app_role("core.token-retention")
    assert run("SELECT label FROM compute_tokens ORDER BY label") == [("fresh",), ("future",), ("live",)]
    set_clock(MIDNIGHT + timedelta(days=400))
    with override_settings(COMPUTE={"RETENTION": {"TOKENS_MS": 0}}):
        as_app_role("core.token-retention")
    assert len(run("SELECT label FROM compute_tokens")) == 3


def told() -> list[str]:
    return [each.check for each in doctor.report("core").findings if each.check.startswith("retention.")]


class TestFindings:
    def test_a_new_installation_and_one_with_partitions_have_none(self, steps: Steps) -> None:
        assert told() == []
        run(PUBLISH)
        assert told() == []
        steps()
        steps(AUDIT)
        assert told() == []

    def test_rows_without_a_partition(self) -> None:
        run(PUBLISH)
        set_clock(MIDNIGHT + timedelta(days=2, hours=12))
        assert told() == ["retention.default-rows"]

    def test_partitions_that_nobody_makes(self, steps: Steps) -> None:
        steps()
        set_clock(MIDNIGHT + timedelta(days=7, hours=1))
        assert told() == ["retention.partitions-missing"]
        set_clock(MIDNIGHT + timedelta(days=9))
        assert told() == ["retention.partitions-missing"]

    def test_partitions_that_nobody_drops(self, steps: Steps) -> None:
        steps()
        set_clock(MIDNIGHT + timedelta(days=40))
        steps()
        assert told() == ["retention.behind"]
        with override_settings(COMPUTE={"RETENTION": {"OUTBOX_MS": 0}}):
            assert told() == []

    def test_the_reader_that_is_behind_is_named(self, steps: Steps) -> None:
        run("INSERT INTO compute_retention_holds (name, relation) VALUES ('events.webhooks', 'compute_outbox')")
        steps()
        run(PUBLISH)
        set_clock(MIDNIGHT + timedelta(days=40))
        steps(OUTBOX, timedelta(days=30))
        (finding,) = [each for each in doctor.report("core").findings if each.check == "retention.behind"]
        assert "events.webhooks" in finding.message

    def test_a_setting_below_the_floor(self) -> None:
        with override_settings(COMPUTE={"RETENTION": {"AUDIT_MS": 1_000}}):
            assert told() == ["retention.below-floor"]

    def test_answers_that_nobody_purges(self) -> None:
        run(
            "INSERT INTO compute_idempotency (principal, tenant_id, method, key, input_hash, answer, request_id,"
            " expires_at) VALUES ('p', 't', 'm', 'k', sha256(''), '', 'r', compute_now())"
        )
        assert told() == []
        set_clock(MIDNIGHT + timedelta(hours=19))
        assert told() == ["retention.idempotency-behind"]


@pytest.mark.parametrize(("key", "value"), [("OUTBOX_MS", -1), ("AUDIT_MS", "30 days"), ("TOKENS_MS", 1.5), ("X", 1)])
def test_a_setting_is_typed(key: str, value: Any) -> None:
    with override_settings(COMPUTE={"RETENTION": {key: value}}), pytest.raises(ComputeError) as caught:
        conf.current()
    assert caught.value.code == "INVALID_CONFIG"
