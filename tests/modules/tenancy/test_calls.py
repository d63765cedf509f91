"""What calls meet in each state of their tenant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from better_compute import ComputeError, ErrorCode, Principal, compute
from better_compute.envelope import tokens
from better_compute.testing import advance_clock
from example_project.acme_widgets.models import Widget
from tests.envelope.conftest import count_rows, grown, make_user
from tests.modules.tenancy.conftest import OPERATOR, delete, status, tick_until_quiet, told

pytestmark = pytest.mark.django_db(transaction=True)


def poke(tenant_id: str = "t1", widget_id: str = "w1") -> Any:
    return compute.api.plugins.acme.widgets.poke(OPERATOR, {"tenantId": tenant_id, "widgetId": widget_id})


def refused(call: Any) -> ComputeError:
    with pytest.raises(ComputeError) as caught:
        call()
    return caught.value


def suspend(tenant_id: str = "t1", reason: str = "unpaid") -> Any:
    return compute.api.tenants.suspend(OPERATOR, {"tenantId": tenant_id, "reason": reason})


class TestSuspended:
    def test_a_mutation_is_refused_with_code_and_reason_and_writes_nothing_but_its_record(self) -> None:
        suspend()
        before = count_rows()
        error = refused(poke)
        assert (error.code, error.reason) == (ErrorCode.INVALID_STATE, "TENANT_SUSPENDED")
        assert error.message == "The tenant 't1' is suspended: unpaid."
        assert grown(before) == {"compute_audit_events": 1}

    def test_reads_are_allowed(self) -> None:
        poke()
        suspend()
        assert compute.api.plugins.acme.widgets.count(OPERATOR, {"tenantId": "t1"}).count == 1

    def test_other_tenants_go_on(self) -> None:
        suspend()
        assert poke("t2").poked == "w1"

    def test_after_resume_everything_goes_on_and_both_were_told(self) -> None:
        suspend()
        compute.api.tenants.resume(OPERATOR, {"tenantId": "t1", "reason": "paid"})
        assert poke().poked == "w1"
        assert [event["data"]["reason"] for event in told("tenant.suspended") + told("tenant.resumed")] == [
            "unpaid",
            "paid",
        ]

    def test_the_refusal_stands_over_http(self, client: Client) -> None:
        user = make_user("mary", "compute:acme:poke")
        secret, _ = tokens.create(user=user, label="test", tenant_id="t1")
        suspend()
        answer = client.post(
            "/api/compute/plugins/acme/widgets/poke",
            {"tenantId": "t1", "widgetId": "w1"},
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )
        assert answer.status_code == 409
        assert answer.json()["code"] == "INVALID_STATE"
        assert answer.json()["reason"] == "TENANT_SUSPENDED"


class TestDeleting:
    def test_mutations_and_reads_are_refused_and_status_is_told(self) -> None:
        poke()
        delete("t1")
        for call in (
            lambda: poke(widget_id="w2"),
            lambda: compute.api.plugins.acme.widgets.count(OPERATOR, {"tenantId": "t1"}),
        ):
            assert refused(call).reason == "TENANT_DELETING"
        assert compute.api.tenants.get(OPERATOR, {"tenantId": "t1"}).state == "deleting"
        assert status("t1").phase == "deleting"

    def test_no_token_is_made_for_it_at_the_shell_either(self) -> None:
        user = make_user("mary")
        suspend()
        tokens.create(user=user, label="while suspended", tenant_id="t1")
        delete("t1")
        assert refused(lambda: tokens.create(user=user, label="late", tenant_id="t1")).reason == "TENANT_DELETING"
        tick_until_quiet()
        assert refused(lambda: tokens.create(user=user, label="late", tenant_id="t1")).reason == "TENANT_TORN_DOWN"

    def test_a_method_that_removes_a_blocker_may_be_called(self) -> None:
        poke()
        delete("t1")
        compute.api.plugins.script.things.erase(OPERATOR, {"tenantId": "t1", "widgetId": "w1"})
        assert not Widget.objects.exists()

    def test_a_torn_down_tenant_refuses_that_too_and_its_status_stays_readable(self) -> None:
        delete("t1")
        tick_until_quiet()
        error = refused(lambda: compute.api.plugins.script.things.erase(OPERATOR, {"tenantId": "t1", "widgetId": "w"}))
        assert error.reason == "TENANT_TORN_DOWN"
        assert status("t1").phase == "torn_down"
        assert status("t1").teardown_done_at is not None

    def test_a_stranger_learns_nothing_of_the_state(self) -> None:
        delete("t1")
        user = make_user("eve", "compute:acme:poke", "compute:acme:read")
        eve = Principal(id="token/eve", kind="token", tenant_id="t2", user=user)
        for tenant in ("t1", "never-seen"):
            error = refused(
                lambda tenant=tenant: compute.api.plugins.acme.widgets.poke(eve, {"tenantId": tenant, "widgetId": "w"})
            )
            assert error.code is ErrorCode.NOT_FOUND
            assert error.reason == ""


class TestListing:
    def test_a_list_never_shows_what_get_refuses(self) -> None:
        for tenant in ("t1", "t2", "t3"):
            suspend(tenant)
        # May read tenants of the installation, but act in none.
        user = make_user("olga", "compute:tenants:read")
        olga = Principal(id="user/olga", kind="session", user=user)
        assert compute.api.tenants.list(olga, {}).items == []
        assert refused(lambda: compute.api.tenants.get(olga, {"tenantId": "t1"})).code is ErrorCode.NOT_FOUND

    def test_pages_follow_each_other_without_gap_or_repetition(self) -> None:
        for number in range(7):
            suspend(f"t{number}")
        seen, after = [], None
        while True:
            page = compute.api.tenants.list(OPERATOR, {"limit": 3, **({"cursor": after} if after else {})})
            seen += [tenant.tenant_id for tenant in page.items]
            after = page.next_cursor
            if after is None:
                break
        assert seen == [f"t{number}" for number in range(7)]

    def test_a_page_can_be_of_one_state(self) -> None:
        suspend("t1")
        delete("t2")
        page = compute.api.tenants.list(OPERATOR, {"state": "deleting"})
        assert [tenant.tenant_id for tenant in page.items] == ["t2"]

    def test_ids_of_any_shape_are_in_code_point_order(self) -> None:
        names = ["a", "B", "a:b", "_", "z.z", "0"]
        for name in names:
            suspend(name)
        page = compute.api.tenants.list(OPERATOR, {})
        assert [tenant.tenant_id for tenant in page.items] == sorted(names)


class TestBadInput:
    @pytest.mark.parametrize("tenant_id", ["", "t1\n", "a/b", "x" * 129, "t\u0661"])
    def test_a_malformed_tenant_is_refused(self, tenant_id: str) -> None:
        error = refused(lambda: compute.api.tenants.suspend(OPERATOR, {"tenantId": tenant_id, "reason": "r"}))
        assert error.code is ErrorCode.INVALID_INPUT

    @pytest.mark.parametrize("reason", ["", "x" * 501, 7, None])
    def test_a_reason_is_a_short_text(self, reason: Any) -> None:
        error = refused(lambda: compute.api.tenants.delete(OPERATOR, {"tenantId": "t1", "reason": reason}))
        assert error.code is ErrorCode.INVALID_INPUT

    def test_a_refused_deletion_leaves_nothing(self) -> None:
        delete("t1")
        before = count_rows()
        assert refused(lambda: delete("t1")).code is ErrorCode.INVALID_STATE
        assert grown(before) == {"compute_audit_events": 1}


def test_a_teardown_older_than_an_hour_is_a_finding_that_names_its_mend() -> None:
    from better_compute import registry
    from better_compute.engine.contexts import module_context
    from compute_modules.tenancy.self_check import self_check

    ctx = module_context(registry.current().module("tenancy"))
    delete("t1")
    assert list(self_check(ctx)) == []
    advance_clock(timedelta(hours=1, seconds=1))
    (finding,) = self_check(ctx)
    assert (finding.check, finding.severity, finding.count) == ("tenancy.teardown-late", "warning", 1)
    assert "'t1'" in finding.message
    assert "no pass has been made yet" in finding.fix


def test_the_app_role_can_do_all_of_it(app_url: str) -> None:
    import psycopg

    with psycopg.connect(app_url) as app:
        app.execute("SELECT * FROM compute_admit_tenants(ARRAY['t1', 't2'], true)")
        app.execute("SELECT pg_advisory_xact_lock(compute_tenant_lock('t1'))")
        app.execute(
            "INSERT INTO compute_tenant_states (tenant_id, state, reason, blockers, passes)"
            " VALUES ('t1', 'suspended', '', '[]', 0)"
        )
        app.rollback()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM compute_tenant_states")
        assert cursor.fetchone()[0] == 0


class TestRoundTrips:
    def test_a_query_reads_its_tenants_state_with_its_first_statement(self, django_assert_num_queries: Any) -> None:
        compute.api.plugins.acme.widgets.count(OPERATOR, {"tenantId": "t1"})
        # BEGIN and preamble, what the method reads, the mark with COMMIT; and Django's BEGIN and COMMIT, not sent.
        with django_assert_num_queries(5) as seen:
            compute.api.plugins.acme.widgets.count(OPERATOR, {"tenantId": "t1"})
        assert "compute_admit_tenants" in seen.captured_queries[1]["sql"]

    def test_a_mutation_takes_the_tenants_lock_in_one_round_trip_after_authorization(
        self, django_assert_num_queries: Any
    ) -> None:
        poke()
        # BEGIN and preamble, admission, the row, the other three with COMMIT; and Django's BEGIN and COMMIT, not sent.
        with django_assert_num_queries(6) as seen:
            poke(widget_id="w2")
        assert "compute_admit_tenants" in seen.captured_queries[2]["sql"]
