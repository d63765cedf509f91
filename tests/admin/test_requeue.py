"""Requeue now: asked first, through the same method as over REST, with every refusal shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.messages import get_messages
from django.http import HttpResponse
from django.test import Client

from better_compute.models import AuditEvent, WorkItem
from better_compute.store import clock
from tests.admin import rows
from tests.admin.conftest import make_viewer

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/compute/workitem/"
REQUEUE = "/admin/compute/workitem/requeue/"
KEY = "acme.widgets:acme.widgets-000003"


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root", password="root"))
    return client


def texts(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def confirm(client: Client, *tokens: str) -> HttpResponse:
    return client.post(REQUEUE, {"confirmed": "yes", "_selected_action": list(tokens)})  # type: ignore[return-value]


def test_the_list_asks_before_it_requeues(operator: Client) -> None:
    rows.work(3)
    before = WorkItem.objects.get(key="acme.widgets-000003")

    page = operator.post(LIST, {"action": "requeue_now", "index": "0", "_selected_action": [KEY]})

    assert page.status_code == 200
    assert "1 key becomes due at once" in page.content.decode()
    assert f'value="{KEY}"' in page.content.decode()
    after = WorkItem.objects.get(key="acme.widgets-000003")
    assert (after.not_before, after.generation) == (before.not_before, before.generation)


def test_a_confirmed_key_is_due_at_once_and_audited(operator: Client) -> None:
    rows.work(3)

    response = confirm(operator, KEY)

    assert response.status_code == 302
    assert texts(response) == ["Requeued 1 key."]
    record = AuditEvent.objects.get()
    assert WorkItem.objects.get(key="acme.widgets-000003").not_before <= clock.now()
    assert (record.method, record.outcome, record.action) == ("work.requeue", "allowed", "compute:work:requeue")


def test_a_key_that_is_gone_is_shown_as_a_refusal(operator: Client) -> None:
    rows.work(3)

    response = confirm(operator, KEY, "acme.widgets:gone")

    assert texts(response)[0] == "Requeued 1 key."
    assert "NOT_FOUND" in texts(response)[1]


def test_a_user_without_the_permission_sees_the_refusal() -> None:
    rows.work(3)
    client = Client()
    client.force_login(make_viewer())  # type: ignore[arg-type]
    before = WorkItem.objects.get(key="acme.widgets-000003").not_before

    response = confirm(client, KEY)

    assert "ACCESS_DENIED" in texts(response)[0]
    assert WorkItem.objects.get(key="acme.widgets-000003").not_before == before
    assert AuditEvent.objects.get().outcome == "denied"


def test_many_refusals_are_counted(operator: Client) -> None:
    response = confirm(operator, *[f"acme.widgets:gone-{number}" for number in range(8)])

    assert len(texts(response)) == 6
    assert texts(response)[-1] == "3 more were refused."


def test_nothing_ticked_says_so(operator: Client) -> None:
    assert texts(confirm(operator)) == ["Tick at least one key before requeueing."]


def test_the_requeue_page_answers_only_post(operator: Client) -> None:
    response = operator.get(REQUEUE)

    assert response.status_code == 405
    assert response["Allow"] == "POST"


def test_requeueing_without_a_csrf_token_is_refused() -> None:
    rows.work(3)
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.create_superuser("root", password="root"))

    assert confirm(client, KEY).status_code == 403
    assert WorkItem.objects.get(key="acme.widgets-000003").generation == 1


def test_requeueing_needs_to_view_the_page() -> None:
    client = Client()
    client.force_login(get_user_model().objects.create_user("clerk", is_staff=True))

    assert confirm(client, KEY).status_code == 403


def test_requeueing_works_under_a_hosts_atomic_requests(operator: Client, settings: Any) -> None:
    from django.db import connections

    rows.work(3)
    connections["default"].settings_dict["ATOMIC_REQUESTS"] = True
    try:
        assert texts(confirm(operator, KEY)) == ["Requeued 1 key."]
        assert operator.get("/admin/").status_code == 200
        assert operator.get(LIST).status_code == 200
    finally:
        connections["default"].settings_dict["ATOMIC_REQUESTS"] = False
