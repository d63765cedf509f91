"""The home page tells how the installation is doing, in a fixed number of bounded statements."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from better_compute import doctor
from better_compute.contract.findings import Finding, Report
from tests.admin import rows

pytestmark = pytest.mark.django_db


def get(client: Client) -> str:
    response = client.get("/admin/")
    assert response.status_code == 200
    return response.content.decode()


def test_home_shows_the_doctors_findings_errors_first(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Finding(check="acme.warned", severity="warning", message="Over a million widgets", fix="Prune old widgets"),
        Finding(check="acme.failed", severity="error", message="<b>No</b> widget works", fix="Buy others", count=3),
    ]
    monkeypatch.setattr(doctor, "report", lambda: Report.of(found))

    page = get(admin_client)

    assert page.index("acme.failed, count 3") < page.index("acme.warned")
    assert "Prune old widgets" in page
    assert "&lt;b&gt;No&lt;/b&gt; widget works" in page


def test_home_says_so_when_nothing_is_to_mend(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "report", lambda: Report.of([]))

    assert "The doctor found nothing to mend." in get(admin_client)


def test_home_shows_the_queue_of_every_kind(admin_client: Client) -> None:
    rows.work(30, failing_each=10)
    rows.work(600, kind="gone.kind", shard="mod(g, 256)")

    page = get(admin_client)

    queue = page[page.index("Work queue") : page.index("Last errors")]
    assert "acme.widgets" in queue
    assert '<td class="compute-number">20</td><td class="compute-number">10</td>' in queue
    assert '<td class="compute-number">400</td><td class="compute-number">200</td>' in queue
    assert "?kind=acme.widgets&amp;state=failing" in queue
    assert "TimeoutError: no answer in 5 s" in page
    assert "second line" not in page


def test_a_long_queue_is_counted_only_to_the_cap(admin_client: Client) -> None:
    rows.work(20_000)

    assert "10,000+" in get(admin_client)


def test_home_maps_the_shards_and_names_their_holders(admin_client: Client) -> None:
    rows.members()

    page = get(admin_client)

    assert page.count("<title>Shard ") == 2 * 512
    assert "<title>Shard 200: web-2:12 for 10m, epoch 4, expired</title>" in page
    assert "246 of 256 shards held by 2 members; 10 free." in page
    assert "<title>Shard 3: held by nobody</title>" in page
    assert "10-127" in page
    assert "singleton:acme.widgets" in page
    assert "Held by nobody: singleton:idle.one." in page


def test_home_tells_a_process_that_ended_without_a_word_from_one_that_lives(admin_client: Client) -> None:
    rows.members()
    page = admin_client.get("/admin/").content.decode()
    assert 'compute-live">live</span></td>\n<td><code>' in page
    rows.execute("UPDATE compute_processes SET seen_at = compute_now() - interval '5 minutes'")
    page = admin_client.get("/admin/").content.decode()
    assert 'compute-gone">gone</span></td>\n<td><code>' in page


def test_home_reads_as_many_statements_for_much_as_for_nothing(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The doctor reads one transaction a check, of which each module may bring one.
    monkeypatch.setattr(doctor, "report", lambda: Report.of([]))
    get(admin_client)
    with CaptureQueriesContext(connection) as empty:
        get(admin_client)
    rows.work(2_000, failing_each=7)
    rows.work(2_000, kind="node.spec", shard="mod(g, 256)")
    rows.members()
    rows.outbox(100)
    with CaptureQueriesContext(connection) as full:
        get(admin_client)

    # Ten parts, each within a savepoint; how the queues are read; the bound; and the session's user.
    assert len(empty) == len(full) == 10 * 3 + 1 + 3 + 2


def test_a_missing_table_is_a_finding_and_the_rest_is_shown(admin_client: Client) -> None:
    rows.work(3)
    rows.execute("ALTER TABLE compute_leases RENAME TO elsewhere")

    page = get(admin_client)

    assert "A table is missing: relation &quot;compute_leases&quot; does not exist" in page
    assert "Run manage.py compute_migrate as the owner role." in page
    assert "admin.leases" in page
    assert "Migration ledger" in page


def test_home_comes_up_on_a_database_without_the_base_schema(admin_client: Client) -> None:
    rows.execute(
        "ALTER FUNCTION compute_now() RENAME TO compute_then;"
        "ALTER TABLE compute_work RENAME TO w; ALTER TABLE compute_migrations RENAME TO m"
    )

    page = get(admin_client)

    assert "admin.work" in page
    assert "admin.clock" in page


def test_a_broken_doctor_is_a_finding(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Report:
        raise RuntimeError("the doctor is ill")

    monkeypatch.setattr(doctor, "report", broken)

    assert "This part could not be read: the doctor is ill." in get(admin_client)


def test_a_statement_that_takes_too_long_is_a_finding(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from better_compute.store import overview

    monkeypatch.setattr(overview, "STATEMENT_TIMEOUT_MS", 50)
    monkeypatch.setattr(overview, "LEDGER", "SELECT pg_sleep(5), %(limit)s")

    page = get(admin_client)

    assert "was stopped" in page
    assert "admin.ledger" in page


def test_staff_without_permissions_see_no_data(client: Client) -> None:
    client.force_login(get_user_model().objects.create_user("clerk", is_staff=True))
    rows.members()

    page = get(client)

    assert "You may view none of the installation" in page
    assert "web-1" not in page


def test_a_part_is_shown_only_with_its_permission(viewer_client: Client) -> None:
    rows.members()
    user = get_user_model().objects.get(username="viewer")
    user.user_permissions.remove(user.user_permissions.get(codename="view_worker"))

    page = get(viewer_client)

    assert 'id="compute-leases"' in page
    assert 'id="compute-workers"' not in page


def test_strangers_are_sent_to_the_login(client: Client) -> None:
    assert client.get("/admin/").status_code == 302
