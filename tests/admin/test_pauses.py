"""Pausing and resuming from the pages: called like over REST, with every refusal shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.messages import get_messages
from django.test import Client

from better_compute.engine import pausing
from better_compute.models import AuditEvent
from tests.admin import rows
from tests.admin.conftest import make_viewer

pytestmark = pytest.mark.django_db

LIST = "/admin/compute/pause/"
ASK = {"scope": "kind:acme.widgets", "reason": "incident 7"}


def texts(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]


def scopes() -> list[str]:
    return [each.scope for each in pausing.paused()]


def test_a_reconciler_is_paused_with_a_reason_and_resumed(admin_client: Client) -> None:
    asked = admin_client.get(LIST + "new/?scope=kind:acme.widgets").content.decode()
    assert '<option value="kind:acme.widgets" selected>reconciler acme.widgets</option>' in asked

    done = admin_client.post(LIST + "new/", ASK)
    assert texts(done) == ["The reconciler acme.widgets is paused; its keys wait in the queue."]
    assert scopes() == ["kind:acme.widgets"]
    assert "incident 7" in admin_client.get(LIST).content.decode()
    home = admin_client.get("/admin/").content.decode()
    assert 'value="kind:acme.widgets" class="compute-act" aria-label="Resume acme.widgets"' in home

    assert texts(admin_client.post(LIST + "resume/", {"scope": "kind:acme.widgets"})) == [
        "The reconciler acme.widgets goes on."
    ]
    assert scopes() == []
    acts = AuditEvent.objects.order_by("at").values_list("method", "action", "resource_id", "outcome")
    assert list(acts) == [
        ("work.pause", "compute:work:pause", "pause/kind:acme.widgets", "allowed"),
        ("work.resume", "compute:work:pause", "pause/kind:acme.widgets", "allowed"),
    ]


def test_a_worker_is_paused_and_said_so_on_the_home_page(admin_client: Client) -> None:
    rows.members()
    assert "worker w-1" in admin_client.get(LIST + "new/").content.decode()

    admin_client.post(LIST + "new/", {"scope": "member:w-1", "reason": "its disk is full"})

    assert scopes() == ["member:w-1"]
    assert "its disk is full" in admin_client.get("/admin/").content.decode()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({**ASK, "reason": ""}, "This field is required"),
        ({**ASK, "scope": ""}, "This field is required"),
        ({**ASK, "scope": "kind:no.such"}, "No kind is named &#x27;no.such&#x27;. Known are"),
        ({**ASK, "scope": "member:gone"}, "No member is named"),
        ({**ASK, "scope": "nonsense"}, "None matches"),
        ({**ASK, "reason": "x" * 501}, "at most 500 characters"),
    ],
)
def test_what_cannot_be_paused_is_refused_with_its_reason(admin_client: Client, ask: dict[str, str], said: str) -> None:
    page = admin_client.post(LIST + "new/", ask)

    assert page.status_code == 200
    assert said in page.content.decode() or "errornote" in page.content.decode()
    assert scopes() == []


def test_what_is_not_paused_is_said_so(admin_client: Client) -> None:
    for scope in ("kind:acme.widgets", "", "nonsense", "member:" + "x" * 100):
        assert texts(admin_client.post(LIST + "resume/", {"scope": scope}))


def test_without_the_right_both_acts_are_denied_and_recorded(client: Client) -> None:
    client.force_login(make_viewer())  # type: ignore[arg-type]
    rows.pause("kind:tenancy")

    refused = client.post(LIST + "new/", ASK).content.decode()
    client.post(LIST + "resume/", {"scope": "kind:tenancy"})

    assert "may not do compute:work:pause" in refused
    assert scopes() == ["kind:tenancy"]
    assert set(AuditEvent.objects.values_list("outcome", "code")) == {("denied", "ACCESS_DENIED")}


def test_resuming_answers_only_post_and_both_need_to_view_the_page(admin_client: Client) -> None:
    assert admin_client.get(LIST + "resume/").status_code == 405
    clerk = Client()
    clerk.force_login(get_user_model().objects.create_user("clerk", is_staff=True))
    assert clerk.get(LIST + "new/").status_code == 403
    assert clerk.post(LIST + "resume/", {"scope": "kind:tenancy"}).status_code == 403


def test_an_empty_list_says_what_to_do(admin_client: Client) -> None:
    assert "Nothing is paused. While an incident lasts" in admin_client.get(LIST).content.decode()
