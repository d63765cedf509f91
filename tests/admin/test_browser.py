"""The pages in a real Chromium, under the example's content policy: no console error, nothing cut, legible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from better_compute.models import AuditEvent, MigrationRecord, WorkItem
from tests.admin import rows
from tests.admin.browser import SHOTS, Watched, fits_everywhere
from tests.engine.conftest import eventually

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def installation() -> None:
    """Rows on every page."""
    get_user_model().objects.create_superuser("operator", password="operator")
    rows.work(120, failing_each=40)
    rows.work(700, kind="node.spec", shard="mod(g, 256)")
    rows.members()
    rows.outbox(150)
    rows.audit(600)
    rows.history(["acme.widgets", "core.idempotency-retention", "node.spec", "tenancy"])
    rows.idempotency(120)
    rows.pause("kind:tenancy")
    rows.pause("member:w-2", "host web-2 is being looked at")


@pytest.fixture
def watched(installation: None, live_server: Any, page: Any) -> Iterator[Watched]:
    """A signed-in operator's page; the test fails on any complaint."""
    page.set_default_timeout(15_000)
    watched = Watched(page, live_server.url)
    watched.come_signed_in()
    yield watched
    assert watched.complaints == []


def addresses() -> dict[str, str]:
    return {
        "home": "",
        "app": "compute/",
        "work": "compute/workitem/",
        "work-of-a-kind": "compute/workitem/?kind=acme.widgets",
        "work-failing": "compute/workitem/?state=failing",
        "work-item": "compute/workitem/acme.widgets_3Aacme.widgets-000040/change/",
        "leases": "compute/lease/?holder=w-1",
        "workers": "compute/worker/",
        "worker": "compute/worker/w-2/change/",
        "processes": "compute/process/",
        "outbox": "compute/outboxevent/?tenant=t7",
        "audit": "compute/auditevent/",
        "audit-record": f"compute/auditevent/{AuditEvent.objects.order_by('-at')[0].pk}/change/",
        "ledger": "compute/migrationrecord/",
        "ledger-record": f"compute/migrationrecord/{MigrationRecord.objects.order_by('-seq')[0].pk}/change/",
        "tokens": "compute/token/",
        "token-new": "compute/token/add/",
        "history": "compute/workitem/history/",
        "pauses": "compute/pause/",
        "pause": "compute/pause/new/?scope=kind:acme.widgets",
        "idempotency": "compute/idempotencyrecord/",
        "limits": "compute/ratelimit/",
    }


def test_every_page_is_whole_and_legible_and_the_browser_has_no_complaint(watched: Watched) -> None:
    for name, address in addresses().items():
        answer = watched.open(address)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        fits_everywhere(watched, name)


def test_forty_reconcilers_with_long_names_fit_and_stay_legible(watched: Watched) -> None:
    kinds = [f"node-{number:02}.reconciler-with-a-name-as-long-as-the-contract-allows"[:64] for number in range(40)]
    for kind in kinds:
        rows.work(7, kind=kind, failing_each=3)
    rows.execute("DELETE FROM compute_queue_history")
    rows.history(kinds)
    rows.pause(f"kind:{kinds[3]}", "x" * 500)
    for name, address in {
        "home": "",
        "history": "compute/workitem/history/?span=48h",
        "pauses": "compute/pause/",
    }.items():
        watched.open(address)
        fits_everywhere(watched, f"{name}-busy")


def test_an_empty_installation_says_what_to_do(watched: Watched) -> None:
    for table in ("queue_history", "work", "leases", "workers", "processes", "pauses", "idempotency"):
        rows.execute(f"DELETE FROM compute_{table}")
    for name, said in {
        "": "takes a sample every minute",
        "compute/workitem/": "Nothing is queued",
        "compute/workitem/history/": "takes a sample every minute",
        "compute/lease/": "Start a worker",
        "compute/worker/": "Start one",
        "compute/pause/": "Nothing is paused",
        "compute/idempotencyrecord/": "No answer is kept",
        "compute/ratelimit/": "No limit is set",
    }.items():
        watched.open(name)
        assert said in watched.page.inner_text("main"), name
        fits_everywhere(watched, f"{name.strip('/').replace('/', '-') or 'home'}-empty")


def test_an_operator_signs_in_and_meets_the_home_page(watched: Watched) -> None:
    watched.page.context.clear_cookies()
    watched.sign_in()

    assert watched.page.url == f"{watched.base}/admin/"
    assert watched.page.locator("table.compute-table").count() >= 7


def test_an_operator_pauses_a_reconciler_and_lets_it_go_on(watched: Watched) -> None:
    page = watched.page
    watched.open("")
    page.get_by_role("link", name="Pause acme.widgets").click()
    page.fill("#id_reason", "incident 7")
    page.click("input[value=Pause]")
    assert "The reconciler acme.widgets is paused" in page.inner_text(".messagelist")
    page.screenshot(path=SHOTS / "paused.png")
    watched.open("")
    assert page.get_by_role("row", name="acme.widgets paused").count() == 1
    page.get_by_role("button", name="Resume acme.widgets").click()

    assert page.inner_text(".messagelist") == "The reconciler acme.widgets goes on."
    assert AuditEvent.objects.filter(method__in=("work.pause", "work.resume"), outcome="allowed").count() == 2


def test_an_operator_resumes_a_worker_from_the_list_of_pauses(watched: Watched) -> None:
    watched.open("compute/pause/")
    watched.page.get_by_role("button", name="Resume worker w-2").click()

    assert watched.page.inner_text(".messagelist") == "The worker w-2 goes on."


def test_an_operator_looks_at_the_queues_over_another_span(watched: Watched) -> None:
    page = watched.page
    watched.open("")
    page.get_by_role("link", name="Every reconciler, up to 48 hours").click()
    page.get_by_role("link", name="1 hour").click()

    assert page.get_by_role("img", name="Keys due over the last 1 hour").count() == 1
    assert page.locator(".compute-small").count() == 4


def test_an_operator_requeues_a_failing_key_from_the_home_page(watched: Watched) -> None:
    page = watched.page
    watched.open("")
    page.click("a.compute-failing")
    page.check("input.action-select >> nth=0")
    page.select_option("select[name=action]", "requeue_now")
    page.click("button[name=index]")
    assert "1 key becomes due at once" in page.inner_text("main")
    page.screenshot(path=SHOTS / "requeue-asked.png")
    page.click("input[value=Requeue]")

    assert page.inner_text(".messagelist") == "Requeued 1 key."
    page.screenshot(path=SHOTS / "requeue-done.png")
    assert AuditEvent.objects.filter(method="work.requeue", outcome="allowed").count() == 1


def test_an_operator_retries_a_stuck_key_from_the_home_page(watched: Watched) -> None:
    watched.open("")
    watched.page.get_by_role("button", name="Retry acme.widgets-000080 now").click()
    watched.page.click("input[value=Requeue]")

    assert watched.page.inner_text(".messagelist") == "Requeued 1 key."
    assert AuditEvent.objects.filter(method="work.requeue").get().resource_id == "work/acme.widgets/acme.widgets-000080"


def test_an_error_without_a_space_in_it_leaves_the_button_in_sight(watched: Watched) -> None:
    rows.execute("UPDATE compute_work SET last_error = repeat('x', 4000) WHERE last_error IS NOT NULL")
    rows.work(1, kind="k" * 64, failing_each=1)
    watched.page.set_viewport_size({"width": 1280, "height": 900})
    watched.open("")
    wide = "region => region.scrollWidth - region.clientWidth"
    errors = watched.page.locator(".compute-scroll[aria-labelledby=compute-errors]")
    assert errors.evaluate(wide) == 0
    assert errors.get_by_role("button").first.is_visible()


def test_an_operator_requeues_a_key_from_its_own_page(watched: Watched) -> None:
    before = WorkItem.objects.get(key="acme.widgets-000003").not_before
    watched.open("compute/workitem/acme.widgets_3Aacme.widgets-000003/change/")
    watched.page.get_by_role("button", name="Requeue now").click()
    watched.page.click("input[value=Requeue]")

    assert watched.page.inner_text(".messagelist") == "Requeued 1 key."
    assert WorkItem.objects.get(key="acme.widgets-000003").not_before < before


def test_an_operator_makes_a_token_and_revokes_it(watched: Watched) -> None:
    page = watched.page
    watched.open("compute/token/add/")
    page.fill("#id_user", "operator")
    page.fill("#id_label", "deploy")
    page.click("input[value='Make the token']")
    assert page.inner_text("#compute-secret").startswith("bct_")
    page.screenshot(path=SHOTS / "token-made.png")
    watched.open("compute/token/")
    page.click("text=deploy")
    page.get_by_role("button", name="Revoke").click()
    page.screenshot(path=SHOTS / "token-revoke-asked.png")
    page.click("input[value=Revoke]")

    assert "Revoked deploy" in page.inner_text(".messagelist")


def test_the_home_page_is_walked_with_the_keyboard(watched: Watched) -> None:
    page = watched.page
    watched.open("")
    page.bring_to_front()
    eventually(lambda: page.evaluate("document.hasFocus()"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-to-content-link"
    stops = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        stops.add(page.evaluate("document.activeElement.className || document.activeElement.tagName"))

    assert "compute-scroll" in stops
    assert "compute-failing" in stops


def test_every_table_of_the_home_page_has_a_caption_and_headers(watched: Watched) -> None:
    watched.open("")
    tables = watched.page.locator("table.compute-table")

    assert tables.count() >= 7
    for index in range(tables.count()):
        table = tables.nth(index)
        assert table.locator("caption").inner_text(timeout=1_000).strip()
        assert table.locator("thead th:not([scope=col])").count() == 0
        assert table.locator("tbody tr").count() == table.locator("tbody th[scope=row]").count()


def test_the_shard_map_is_told_in_words(watched: Watched) -> None:
    watched.open("")
    picture = watched.page.get_by_role("img", name="Shards of the controllers: 246 of 256 shards held by 2 members")

    assert picture.count() == 1


def test_the_content_policy_is_enforced(watched: Watched) -> None:
    watched.open("")
    watched.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    )

    assert watched.page.evaluate("window.ran") is None
    assert watched.complaints
    watched.complaints.clear()
