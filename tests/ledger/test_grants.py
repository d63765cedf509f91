"""What the role that serves may do, tried as that role."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors

from tests.ledger.host import Host, table

APP_ROLE = os.environ.get("COMPUTE_APP_ROLE", "bc_app")

#: A row that each append-only table takes.
APPEND = {
    "compute_outbox": "INSERT INTO compute_outbox (type, tenant_id, subject, data) VALUES ('a.b', 't', 's', '{}')",
    "compute_audit_events": (
        "INSERT INTO compute_audit_events (tenant_id, principal, method, action, resource_type, resource_id, outcome,"
        " request_id, canonical, salt, leaf_hash) VALUES ('t', 'p', 'm', 'a', 'r', 'i', 'allowed', 'q', '{}',"
        " decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'))"
    ),
}
APPEND_ONLY = ["compute_migrations", *APPEND]


@pytest.fixture
def app(host: Host) -> Callable[..., psycopg.Connection[Any]]:
    """Connects as the role that serves, to a migrated database."""
    host.compute["APP_ROLE"] = APP_ROLE
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate")
    return lambda: host.connect(user=APP_ROLE, password=os.environ.get("COMPUTE_APP_PASSWORD"))


def test_the_app_role_cannot_change_what_is_append_only(app: Callable[..., psycopg.Connection[Any]]) -> None:
    with app() as connection:
        for statement in APPEND.values():
            connection.execute(statement)  # type: ignore[arg-type]
        for name in APPEND_ONLY:
            column = "reason" if name == "compute_migrations" else "tenant_id"
            for statement in (
                f"UPDATE {name} SET {column} = 'x'",
                f"DELETE FROM {name}",
                f"TRUNCATE {name}",
                f"ALTER TABLE {name} ADD COLUMN x int",
                f"ALTER TABLE {name} DISABLE TRIGGER ALL",
                f"DROP TRIGGER {name}_rows ON {name}",
                f"DROP TABLE {name}",
            ):
                with pytest.raises(errors.InsufficientPrivilege):
                    connection.execute(statement)  # type: ignore[arg-type]
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("INSERT INTO compute_migrations (owner, name) VALUES ('core', 'core/0001_x')")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("DROP FUNCTION compute_append_only() CASCADE")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE compute_clock SET clock_offset = interval '1 year'",
        "INSERT INTO compute_clock DEFAULT VALUES",
        "DELETE FROM compute_clock",
        APPEND["compute_outbox"].replace("(type", "(id, type").replace("('a.b'", "(1, 'a.b'"),
        APPEND["compute_outbox"].replace("(type", "(xid, type").replace("('a.b'", "('3', 'a.b'"),
        APPEND["compute_outbox"].replace("(type", "(created_at, type").replace("('a.b'", "(now(), 'a.b'"),
        APPEND["compute_outbox"].replace("compute_outbox", "compute_outbox_default"),
        APPEND["compute_audit_events"].replace("(tenant_id", "(xid, tenant_id").replace("('t'", "('3', 't'"),
        APPEND["compute_audit_events"].replace("compute_audit_events", "compute_audit_events_default"),
    ],
)
def test_the_app_role_cannot_write_what_the_database_fills_in(
    app: Callable[..., psycopg.Connection[Any]], statement: str
) -> None:
    with app() as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute(statement)  # type: ignore[arg-type]


def test_a_table_privilege_becomes_one_on_columns(host: Host, app: Callable[..., psycopg.Connection[Any]]) -> None:
    host.run(f"GRANT ALL ON compute_clock, compute_outbox TO {APP_ROLE}")
    host.run(f"GRANT INSERT (id) ON compute_outbox TO {APP_ROLE}")
    host.manage("compute_migrate")
    with app() as connection:
        connection.execute(APPEND["compute_outbox"])  # type: ignore[arg-type]
        connection.execute("UPDATE compute_clock SET anchored_at = compute_now()")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("UPDATE compute_clock SET clock_offset = interval '1 year'")


def test_partitions_are_guarded_like_their_parent(app: Callable[..., psycopg.Connection[Any]]) -> None:
    with app() as connection:
        for name in ("compute_outbox_default", "compute_audit_events_default"):
            for statement in (f"UPDATE {name} SET tenant_id = 'x'", f"DELETE FROM {name}", f"TRUNCATE {name}"):
                with pytest.raises(errors.InsufficientPrivilege):
                    connection.execute(statement)  # type: ignore[arg-type]


def test_even_the_owner_cannot_rewrite_what_is_append_only(
    host: Host, app: Callable[..., psycopg.Connection[Any]]
) -> None:
    with host.connect() as connection:
        for name in APPEND_ONLY:
            if name in APPEND:
                connection.execute(APPEND[name])  # type: ignore[arg-type]
            column = "reason" if name == "compute_migrations" else "tenant_id"
            for statement in (f"UPDATE {name} SET {column} = 'x'", f"DELETE FROM {name}", f"TRUNCATE {name}"):
                with pytest.raises(errors.RestrictViolation, match="the table is append-only"):
                    connection.execute(statement)  # type: ignore[arg-type]


def test_the_app_role_can_do_its_work(app: Callable[..., psycopg.Connection[Any]]) -> None:
    with app() as connection:
        for statement in (
            *APPEND.values(),
            "SELECT compute_now()",
            "SELECT * FROM compute_migrations",
            "SELECT * FROM django_migrations",
            "INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at)"
            " VALUES ('a', 'b', 1, compute_now(), compute_now())",
            "UPDATE compute_work SET generation = generation + 1",
            "DELETE FROM compute_work",
            "UPDATE compute_clock SET anchored_at = compute_now()",
            "INSERT INTO plg_acme_one VALUES (1)",
            "UPDATE plg_acme_one SET id = 2",
            "DELETE FROM plg_acme_one",
            "INSERT INTO auth_group (name) VALUES ('g')",
            "DELETE FROM auth_group",
        ):
            connection.execute(statement)  # type: ignore[arg-type]


def test_the_app_role_cannot_truncate_or_create(app: Callable[..., psycopg.Connection[Any]]) -> None:
    with app() as connection:
        for statement in (
            "TRUNCATE compute_work",
            "TRUNCATE plg_acme_one",
            "CREATE TABLE sneaked (id int)",
            "UPDATE compute_store SET incarnation = gen_random_uuid()",
            "DELETE FROM django_migrations",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement)  # type: ignore[arg-type]


def test_a_second_run_has_nothing_to_grant(host: Host, app: Callable[..., psycopg.Connection[Any]]) -> None:
    result = host.manage(
        "compute_migrate",
        script="""
        from better_compute.store import grants
        bring = grants.bring_up_to_date
        def told(connection, role):
            ran, left = bring(connection, role)
            print("granted:", ran)
            return ran, left
        grants.bring_up_to_date = told
        """,
    )
    assert "granted: []" in result.out


def test_an_excess_privilege_is_taken_back(host: Host, app: Callable[..., psycopg.Connection[Any]]) -> None:
    host.run(f"GRANT ALL ON compute_migrations, compute_outbox TO {APP_ROLE}")
    host.manage("compute_migrate")
    with app() as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("TRUNCATE compute_outbox")


def test_an_excess_privilege_through_public_is_an_error(
    host: Host, app: Callable[..., psycopg.Connection[Any]]
) -> None:
    host.run("GRANT UPDATE ON compute_outbox TO PUBLIC")
    result = host.manage("compute_migrate", exit_code=4)
    assert f"Role '{APP_ROLE}' has more than its own grants" in result.err
    assert "compute_outbox" in result.err


def test_a_table_made_later_is_usable_at_once(host: Host, app: Callable[..., psycopg.Connection[Any]]) -> None:
    host.run("CREATE TABLE plg_acme_later (id int)")
    with app() as connection:
        connection.execute("INSERT INTO plg_acme_later VALUES (1)")


def test_plain_migrate_grants_too(host: Host) -> None:
    host.compute["APP_ROLE"] = APP_ROLE
    host.configure()
    host.manage("migrate")
    with host.connect(user=APP_ROLE, password=os.environ.get("COMPUTE_APP_PASSWORD")) as connection:
        connection.execute("SELECT * FROM compute_work")


def refused(host: Host, role: str, text: str) -> None:
    """``compute_migrate`` refuses ``role`` with ``text`` and does nothing."""
    host.compute["APP_ROLE"] = role
    host.configure()
    assert text in host.manage("compute_migrate", exit_code=2).err
    assert not host.has_table("django_migrations")


@pytest.mark.usefixtures("from_nothing")
def test_a_role_that_does_not_exist_is_refused(host: Host) -> None:
    refused(host, "nobody_here", "COMPUTE['APP_ROLE'] is 'nobody_here', but there is no such role.")


@pytest.mark.usefixtures("from_nothing")
def test_the_owner_is_refused_as_app_role(host: Host) -> None:
    owner = str(host.server["USER"])
    refused(host, owner, f"COMPUTE['APP_ROLE'] is '{owner}', which is the role that migrates.")


@pytest.mark.usefixtures("from_nothing")
def test_a_superuser_is_refused_as_app_role(host: Host) -> None:
    ((superuser,),) = host.rows("SELECT rolname FROM pg_roles WHERE rolsuper ORDER BY oid LIMIT 1")
    refused(host, superuser, "which is a superuser, so nothing protects the append-only tables.")


@pytest.mark.usefixtures("from_nothing")
def test_a_member_of_the_owner_is_refused_as_app_role(host: Host) -> None:
    owner, member = (f"{name}_{uuid4().hex[:8]}" for name in ("owner", "member"))
    host.run(f"CREATE ROLE {owner} LOGIN PASSWORD 'owner'")
    host.run(f"CREATE ROLE {member}")
    try:
        host.run(f"GRANT {owner} TO {member}")
        host.databases["default"] = {**host.default_database, "USER": owner, "PASSWORD": "owner"}
        refused(host, member, "which is a member of the role that migrates.")
    finally:
        host.run(f"DROP ROLE {owner}, {member}")


def test_a_role_that_owns_a_compute_table_is_refused(host: Host, app: Callable[..., psycopg.Connection[Any]]) -> None:
    role = f"owner_{uuid4().hex[:8]}"
    host.run(f"CREATE ROLE {role}")
    try:
        host.run(f"GRANT {role} TO {host.server['USER']}")
        host.run(f"GRANT CREATE ON SCHEMA public TO {role}")
        host.run(f"ALTER TABLE compute_work OWNER TO {role}")
        host.compute["APP_ROLE"] = role
        host.configure()
        result = host.manage("compute_migrate", exit_code=2)
        assert f"COMPUTE['APP_ROLE'] is '{role}', which owns compute_work." in result.err
    finally:
        host.run(f"REASSIGN OWNED BY {role} TO CURRENT_USER")
        host.run(f"DROP OWNED BY {role}")
        host.run(f"DROP ROLE {role}")
