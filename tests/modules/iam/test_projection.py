"""The projection follows every change of every writer and keeps nothing that was not committed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from django.db import connection, transaction as django_transaction
from django.test.utils import CaptureQueriesContext

from better_compute import compute
from better_compute.store import transaction
from compute_modules.iam import lifecycle
from compute_modules.iam.projection import AHEAD, Projection, projection
from tests.modules.iam.conftest import OPERATOR, grant, may, refused, revoke, rows, service, tenant
from tests.modules.tenancy.conftest import in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


def read(one: Projection = projection) -> Any:
    return one.read(compute.context("iam")).facts


class Counting:
    """Counts the statements that load, by whether they load anew."""

    def __init__(self) -> None:
        self.after: list[int] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "json_build_object" in sql:
            self.after.append(params["after"])
        return execute(sql, params, many, context)


def test_while_nothing_changes_a_reading_is_one_statement_and_the_same_object() -> None:
    first = read()
    counting = Counting()
    with connection.execute_wrapper(counting):
        assert read() is first
    assert counting.after == []


def test_a_change_is_caught_up_with_and_not_loaded_anew() -> None:
    service("bob")
    before = read()
    given = grant("bob", "own", "viewer")
    counting = Counting()
    with connection.execute_wrapper(counting):
        after = read()
    assert counting.after == [before.version] or counting.after == []
    assert given.id in after.holdings["service/bob"].by_id
    # Whoever still works with the facts of before sees them unchanged.
    assert "service/bob" not in before.holdings


def test_everything_caught_up_with_is_what_a_fresh_load_finds() -> None:
    read()
    for name in ("a", "b", "c"):
        service(name)
        grant(name, "own", "viewer")
        read()
    compute.api.roles.create(who_owns(), {"tenantId": "own", "name": "r", "permits": ["compute:acme:read"]})
    read()
    revoke(grant("a", "org", "operator", inherit=True).id)
    tenant("new", "org", ceiling=["compute:acme:*"])
    followed, fresh = read(), read(Projection())
    assert followed.tenants == fresh.tenants
    assert followed.roles == fresh.roles
    assert followed.principals == fresh.principals
    assert {who: held.by_id for who, held in followed.holdings.items() if held.by_id} == {
        who: held.by_id for who, held in fresh.holdings.items()
    }
    assert {place: held for place, held in followed.holders.items() if held} == dict(fresh.holders)


def who_owns() -> Any:
    owner = service("the-owner")
    grant("the-owner", "org", "owner", inherit=True)
    return owner


def test_what_was_rolled_back_is_known_to_nobody() -> None:
    bob = service("bob")
    before = read()
    with pytest.raises(ZeroDivisionError), transaction.transaction():
        rows(
            "INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type,"
            " resource_id, inherit, reason, break_glass, created_by, revoked_by)"
            " VALUES (gen_random_uuid(), 'service/bob', 'permit', 'owner', '[]', 'own', '', '', false, '', false, '',"
            " '')"
        )
        # The transaction itself sees its own change ...
        assert read().holdings["service/bob"].by_id
        raise ZeroDivisionError
    # ... and nobody else ever does.
    assert read() is before
    assert may(bob) == "NOT_FOUND"


def test_a_change_by_bare_sql_acts_at_the_next_request() -> None:
    bob = service("bob")
    given = grant("bob", "own", "viewer")
    assert may(bob) == "yes"
    rows("UPDATE compute_iam_grants SET revoked_at = compute_now() WHERE id = %s", given.id)
    assert may(bob) == "NOT_FOUND"


def test_a_change_by_another_process_acts_at_the_next_request(process_env: dict[str, str]) -> None:
    bob = service("bob")
    given = grant("bob", "own", "viewer")
    assert may(bob) == "yes"
    script = (
        "import django; django.setup()\n"
        "from better_compute import Principal, compute\n"
        f"compute.api.grants.revoke(Principal(id='internal/other', kind='internal'), {{'grantId': {given.id!r}}})\n"
    )
    subprocess.run([sys.executable, "-c", script], env={**os.environ, **process_env}, check=True, timeout=60)
    assert may(bob) == "NOT_FOUND"


def test_tables_that_were_emptied_void_what_was_known() -> None:
    bob = service("bob")
    grant("bob", "own", "viewer")
    assert may(bob) == "yes"
    rows("TRUNCATE compute_iam_grants")
    assert may(bob) == "NOT_FOUND"


def test_a_version_that_went_back_voids_what_was_known() -> None:
    """As after a restore of the database under a running process."""
    bob = service("bob")
    assert may(bob) == "NOT_FOUND"
    with django_transaction.atomic():
        rows("UPDATE compute_iam_version SET version = version + 100")
    read()
    rows("UPDATE compute_iam_version SET version = version - 50")
    grant("bob", "own", "viewer")
    assert may(bob) == "yes"


def test_versions_are_seen_in_order_although_writers_overlap() -> None:
    """A writer that began first and commits last holds the others off, so no version is seen before a lower one."""
    service("bob")
    service("eve")
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.transaction():
            rows("SELECT compute_iam_raise()")
            inside.set()
            assert go_on.wait(10)
            rows("UPDATE compute_iam_principals SET name = 'slow' WHERE id = 'service/bob'")

    first, first_answers = in_thread(slow)
    assert inside.wait(10)
    second, second_answers = in_thread(lambda: grant("eve", "own", "viewer"))
    before = read()
    go_on.set()
    first.join(10)
    second.join(10)
    assert first_answers == [None]
    assert second_answers[0].principal == "service/eve"
    after = read()
    assert after.version > before.version
    assert rows("SELECT max(version) FROM compute_iam_grants") > rows(
        "SELECT version FROM compute_iam_principals WHERE id = 'service/bob'"
    )


def test_readers_at_once_agree_and_load_once() -> None:
    service("bob")
    for _ in range(5):
        grant("bob", "own", "viewer")
    projection.forget()
    start = threading.Barrier(4)
    loads: list[int] = []

    def load() -> Any:
        start.wait(10)
        counting = Counting()
        with connection.execute_wrapper(counting):
            facts = read()
        loads.extend(counting.after)
        return facts

    threads = [in_thread(load) for _ in range(4)]
    for thread, _ in threads:
        thread.join(10)
    assert len({id(answers[0]) for _, answers in threads}) == 1
    assert loads == [0]


def test_start_loads_it_and_may_be_called_again_and_stop_lets_go() -> None:
    ctx = compute.context("iam")
    lifecycle.start(ctx)
    known = projection.known
    assert known.version > 0
    lifecycle.start(ctx)
    assert projection.known is known
    lifecycle.stop()
    assert projection.known.version == 0
    assert rows("SELECT count(*) FROM compute_iam_tenants WHERE kind = 'root'") == [(1,)]


def test_the_tree_tells_a_tenants_line_and_knows_its_root() -> None:
    ctx = compute.context("iam")
    port = ctx.hosted.port("tenant-tree")

    def line(tenant_id: str) -> set[str]:
        lineage = port.lineage(tenant_id)
        return set(ctx.sql.query(f"SELECT {lineage.sql} AS line", lineage.params).rows[0]["line"])

    assert line("own") - {"root"} == {"org", "own"}
    assert line("nowhere") - {"root"} == {"nowhere"}
    assert port.root() == "root"


class TestReadAhead:
    """The version comes with a call's first statement, so that judging takes none of its own while nothing changed."""

    def statements(self, by: Any) -> list[str]:
        compute.api.plugins.acme.widgets.count(by, {"tenantId": "own"})
        with CaptureQueriesContext(connection) as found:
            compute.api.plugins.acme.widgets.count(by, {"tenantId": "own"})
        return [query["sql"] for query in found]

    def test_a_query_that_grants_allow_takes_as_many_statements_as_one_that_nobody_judges(self) -> None:
        bob = service("bob")
        grant("bob", "own", "viewer")
        judged, trusted = self.statements(bob), self.statements(OPERATOR)
        assert len(judged) == len(trusted)
        assert sum("compute_iam_version" in sql for sql in judged) == 1

    def test_after_a_change_the_next_call_catches_up_in_one_statement_more(self) -> None:
        bob = service("bob")
        grant("bob", "own", "viewer")
        before = len(self.statements(bob))
        service("somebody")
        with CaptureQueriesContext(connection) as found:
            compute.api.plugins.acme.widgets.count(bob, {"tenantId": "own"})
        assert len(found) == before + 1

    def test_a_revocation_that_commits_between_two_calls_acts_at_the_second(self) -> None:
        bob = service("bob")
        given = grant("bob", "own", "viewer")
        assert may(bob) == "yes"
        thread, answers = in_thread(lambda: revoke(given.id))
        thread.join(10)
        assert answers[0].state == "revoked"
        assert may(bob) == "NOT_FOUND"

    def test_a_call_that_fails_to_name_a_tenant_is_judged_all_the_same(self) -> None:
        bob = service("bob")
        grant("bob", "root", "viewer")
        assert compute.api.system.version(bob).core
        assert refused(lambda: compute.api.work.requeue(bob, {"kind": "tenancy", "key": "*"})).code == "ACCESS_DENIED"

    def test_tables_that_were_never_written_are_version_nought(self) -> None:
        rows("DELETE FROM compute_iam_version")
        with transaction.transaction():
            (read,) = rows(f"SELECT {AHEAD}")[0]
            # The deletion is this transaction's own.
            assert read.startswith("0 ")
            rows("SELECT compute_iam_raise()")
