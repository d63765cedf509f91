"""Pages of big tables: no COUNT, no sort and no scan of the table, and nothing to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from better_compute import models
from tests.admin import rows

pytestmark = pytest.mark.django_db

#: Big enough that a plan which reads it all costs the planner more than any index.
MANY = 10_000
LISTS = (
    *("workitem", "lease", "worker", "process", "outboxevent", "auditevent", "migrationrecord", "token"),
    *("pause", "idempotencyrecord", "ratelimit"),
)


def url(model: str, tail: str = "") -> str:
    return f"/admin/compute/{model}/{tail}"


def plans(client: Client, address: str, table: str) -> Iterator[str]:
    """The plans of the statements of a page that read ``table``."""
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
    assert response.status_code == 200, address
    read = [query["sql"] for query in captured if f'"{table}"' in query["sql"]]
    assert read
    for sql in read:
        assert "COUNT(" not in sql.upper()
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + sql.replace("%", "%%"), [])
            yield "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.parametrize(
    ("table", "address"),
    [
        ("compute_work", "workitem/"),
        ("compute_work", "workitem/?p=7"),
        ("compute_work", "workitem/?kind=acme.widgets"),
        ("compute_work", "workitem/?kind=acme.widgets&q=acme.widgets-0001"),
        ("compute_work", "workitem/?q=acme.widgets-000123"),
        ("compute_work", "workitem/?state=failing"),
        ("compute_work", "workitem/acme.widgets_3Aacme.widgets-000123/change/"),
        ("compute_outbox", "outboxevent/"),
        ("compute_outbox", "outboxevent/?p=7"),
        ("compute_outbox", "outboxevent/?tenant=t7"),
        ("compute_outbox", "outboxevent/?q=123"),
        ("compute_audit_events", "auditevent/"),
        ("compute_audit_events", "auditevent/?p=7"),
        ("compute_audit_events", "auditevent/?outcome=denied"),
        ("compute_audit_events", "auditevent/?tenant=t7"),
        ("compute_audit_events", "auditevent/?outcome=denied&tenant=t0"),
        ("compute_idempotency", "idempotencyrecord/"),
        ("compute_idempotency", "idempotencyrecord/?p=7"),
        ("compute_idempotency", "idempotencyrecord/?principal=user/7"),
        ("compute_idempotency", "idempotencyrecord/?principal=user/7&q=t1"),
        ("compute_idempotency", "idempotencyrecord/?q=user/7"),
    ],
)
def test_a_page_of_a_big_table_reads_it_through_an_index(admin_client: Client, table: str, address: str) -> None:
    if table == "compute_work":
        rows.work(MANY, failing_each=50)
    elif table == "compute_outbox":
        rows.outbox(MANY)
    elif table == "compute_idempotency":
        rows.idempotency(MANY)
    else:
        rows.audit(MANY)
    rows.analyze(table)

    for plan in plans(admin_client, "/admin/compute/" + address, table):
        assert not re.search(rf"Seq Scan on {table}", plan), plan
        assert "Sort" not in plan or "Incremental Sort" in plan or "Bitmap" in plan, plan


@pytest.mark.parametrize("model", LISTS)
def test_a_list_offers_no_change(admin_client: Client, model: str) -> None:
    page = admin_client.get(url(model))

    assert page.status_code == 200
    assert b"delete_selected" not in page.content
    if model != "token":
        assert admin_client.get(url(model, "add/")).status_code == 403
    answer = admin_client.post(url(model), {"action": "delete_selected", "_selected_action": "1", "index": "0"})
    assert b"Are you sure" not in answer.content
    assert answer.status_code in (200, 302)


@pytest.mark.parametrize(
    ("model", "id"),
    [
        ("workitem", "acme.widgets_3Aacme.widgets-000001"),
        ("lease", "shard_3A200"),
        ("worker", "scheduler_2Fw-3"),
        ("process", "6c1f5f3e-0000-4000-8000-000000000001"),
        ("outboxevent", None),
        ("auditevent", None),
        ("migrationrecord", "1"),
    ],
)
def test_a_row_is_shown_read_only(admin_client: Client, model: str, id: str | None) -> None:
    rows.work(1, failing_each=1)
    rows.members()
    rows.outbox(1)
    rows.audit(1)
    if id is None:
        known = {"outboxevent": models.OutboxEvent, "auditevent": models.AuditEvent}[model]
        id = str(known.objects.get().pk)

    page = admin_client.get(url(model, f"{id}/change/"))

    assert page.status_code == 200
    body = page.content.decode()
    assert 'type="text"' not in body.partition('<main id="content-start"')[2].partition("</main>")[0]
    assert "deletelink" not in body
    assert admin_client.post(url(model, f"{id}/change/"), {"key": "x"}).status_code == 403
    assert admin_client.post(url(model, f"{id}/delete/"), {"post": "yes"}).status_code == 403


def test_a_list_leafs_forth_and_back_without_a_total(admin_client: Client) -> None:
    rows.outbox(250)

    first = admin_client.get(url("outboxevent")).content.decode()
    last = admin_client.get(url("outboxevent", "?p=3")).content.decode()

    assert "1 to 100" in first
    assert 'rel="next" href="?p=2"' in first
    assert 'rel="prev"' not in first
    assert "201 to 250" in last
    assert 'rel="next"' not in last
    assert "250 outbox" not in first


def test_a_page_far_away_is_cut_to_the_last_one_allowed(admin_client: Client) -> None:
    rows.outbox(20)

    assert "Nothing here." in admin_client.get(url("outboxevent", "?p=99999999999")).content.decode()


def test_the_last_page_says_that_more_follow(admin_client: Client) -> None:
    rows.outbox(10_150)

    page = admin_client.get(url("outboxevent", "?p=100")).content.decode()

    assert "More rows follow; choose a filter to reach them." in page


@pytest.mark.parametrize(
    "query",
    ["data__icontains=x", "subject__regex=.*", "tenant_id__gt=a", "o=1.2&subject=x", "key__contains=1"],
)
def test_a_lookup_that_no_index_serves_is_refused(admin_client: Client, query: str) -> None:
    assert admin_client.get(url("outboxevent", f"?{query}")).status_code == 400


@pytest.mark.parametrize("text", ["", "99999999999999999999999", "²", "ü", "x" * 600, "'; --", "%", "\\"])
@pytest.mark.parametrize(
    "model", ["workitem", "outboxevent", "auditevent", "migrationrecord", "lease", "idempotencyrecord"]
)
def test_any_search_text_gives_a_page(admin_client: Client, model: str, text: str) -> None:
    assert admin_client.get(url(model), {"q": text}).status_code == 200


@pytest.mark.parametrize("id", ["nothing", "acme.widgets_3A", "_3Ax", "a_00b_3Ac", "a_3Ab_00c"])
def test_a_work_item_that_is_none_leads_back(admin_client: Client, id: str) -> None:
    assert admin_client.get(url("workitem", f"{id}/change/")).status_code in (302, 404)


#: Filters of the core and of modules, and rows whose key is text, a number and a UUID.
@pytest.mark.parametrize(
    "address",
    [
        *("compute/workitem/?kind=%00", "compute/lease/?holder=a%00", "compute/outboxevent/?tenant=%00&p=1"),
        *("compute/idempotencyrecord/?principal=%00", "compute_iam/grantrow/?tenant=%00"),
        *("compute_iam/tenantnode/?below=%00", "compute_iam/tenantnode/%00/change/"),
        *("compute_tenancy/tenantstate/%00/change/", "compute/auditevent/%00/change/"),
        *("compute/migrationrecord/%00/change/", "compute/workitem/acme.widgets_3A%00/change/"),
    ],
)
def test_a_nul_in_an_address_leads_back(admin_client: Client, address: str) -> None:
    answer = admin_client.get(f"/admin/{address}")
    assert answer.status_code == 302
    back = admin_client.get(answer["Location"], follow=True)
    assert back.status_code == 200


def test_a_row_that_is_gone_leads_back(admin_client: Client) -> None:
    assert admin_client.get(url("auditevent", f"{uuid4()}/change/")).status_code == 302


def test_keys_of_any_script_have_a_page(admin_client: Client) -> None:
    key = "ключ/ü:?#&%_ 3A\n" + "x" * 400
    rows.execute(
        "INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at) "
        "VALUES ('acme.widgets', %s, -1, compute_now(), compute_now())",
        [key],
    )
    page = admin_client.get(url("workitem")).content.decode()
    href = re.search(r'<a href="([^"]+/change/[^"]*)"', page)

    assert href is not None
    assert "ключ/ü" in admin_client.get(href[1].replace("&amp;", "&")).content.decode()


def test_search_finds_a_whole_key_and_with_a_kind_a_beginning(admin_client: Client) -> None:
    rows.work(200)

    def shown(query: str) -> int:
        return admin_client.get(url("workitem", query)).content.decode().count('class="action-select"')

    assert shown("?q=acme.widgets-00001") == 0
    assert shown("?q=acme.widgets-000017") == 1
    assert shown("?kind=acme.widgets&q=acme.widgets-00001") == 10


def test_failing_keys_come_newest_first(admin_client: Client) -> None:
    rows.work(100, failing_each=40)

    page = admin_client.get(url("workitem", "?state=failing")).content.decode()

    assert page.index("acme.widgets-000040") < page.index("acme.widgets-000080")
    assert "acme.widgets-000041" not in page


def test_an_audit_record_shows_its_canonical_bytes_as_text(admin_client: Client) -> None:
    rows.audit(1)
    record = models.AuditEvent.objects.get()

    page = admin_client.get(url("auditevent", f"{record.pk}/change/")).content.decode()

    assert "{&quot;action&quot;:&quot;compute:acme:poke&quot;}" in page
    assert b"0123456789abcdef".hex() in page


def test_a_missing_table_gives_a_page_that_says_so(admin_client: Client) -> None:
    rows.execute("ALTER TABLE compute_leases RENAME TO elsewhere")

    response = admin_client.get(url("lease"))

    assert response.status_code == 503
    assert "Run manage.py compute_migrate" in response.content.decode()


@pytest.mark.parametrize("model", LISTS)
def test_a_page_needs_its_view_permission(viewer_client: Client, model: str) -> None:
    assert viewer_client.get(url(model)).status_code == 200
    from django.contrib.auth import get_user_model

    get_user_model().objects.get(username="viewer").user_permissions.clear()
    assert viewer_client.get(url(model)).status_code == 403


def test_the_pages_may_stand_on_the_hosts_own_site() -> None:
    from better_compute.admin import register_pages

    own = admin.AdminSite(name="own")
    register_pages(own)
    register_pages(own)

    assert own.is_registered(models.WorkItem)
    assert own.urls
    assert admin.site.is_registered(models.WorkItem)


def test_the_compute_site_may_stand_beside_the_hosts_own() -> None:
    from better_compute.admin import site

    assert site.name == "compute"
    assert site.is_registered(models.WorkItem)
