"""Default deny; a token stays in its tenant; what lies in another tenant cannot be told from what is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.http import HttpResponse
from django.test import Client, override_settings

from better_compute import ComputeError, Decision, Principal, Resource
from better_compute.envelope import authorize
from better_compute.envelope.permissions import create_permissions
from example_project.acme_widgets.models import Widget
from tests.envelope.conftest import EVERYTHING, Caller, MakeCaller, count_rows, grown, make_user
from tests.envelope.probe import READ, WRITE

pytestmark = pytest.mark.django_db


def problem(response: HttpResponse) -> tuple[int, str]:
    return response.status_code, json.loads(response.content).get("code", "")


def test_without_the_permission_a_call_is_denied_and_writes_one_audit_record(make_caller: MakeCaller) -> None:
    caller = make_caller("t1", READ)
    before = count_rows()
    response = caller.probe("write")
    assert problem(response) == (403, "ACCESS_DENIED")
    assert json.loads(response.content)["reason"] == "PERMISSION_MISSING"
    assert grown(before) == {"compute_audit_events": 1}


def test_a_user_without_permissions_may_do_nothing(make_caller: MakeCaller) -> None:
    caller = make_caller("t1")
    for method in ("write", "peek", "get", "post"):
        assert problem(caller.probe(method)) == (403, "ACCESS_DENIED")
    assert problem(caller.post("system/version")) == (403, "ACCESS_DENIED")


def test_tokens_of_two_tenants_with_swapped_ids_reach_nothing(make_caller: MakeCaller) -> None:
    one, two = make_caller("t1", *EVERYTHING, name="one"), make_caller("t2", *EVERYTHING, name="two")
    Widget.objects.create(id="w-one", tenant_id="t1")
    Widget.objects.create(id="w-two", tenant_id="t2")
    before = count_rows()
    for caller, tenant, widget in ((one, "t2", "w-two"), (two, "t1", "w-one")):
        for path, body in (
            ("plugins/acme/widgets/poke", {"tenantId": tenant, "widgetId": "new"}),
            ("plugins/acme/widgets/count", {"tenantId": tenant}),
            ("plugins/probe/probes/write", {"tenantId": tenant}),
            ("plugins/probe/probes/touch", {"widgetId": widget}),
        ):
            assert problem(caller.post(path, body)) == (404, "NOT_FOUND"), path
    assert grown(before) == {"compute_audit_events": 8}
    assert one.post("plugins/probe/probes/touch", {"widgetId": "w-one"}).status_code == 200


def test_another_tenants_record_reads_like_a_missing_one(caller: Caller) -> None:
    Widget.objects.create(id="theirs", tenant_id="t2")
    answers = []
    for widget in ("theirs", "nobodys"):
        response = caller.post("plugins/probe/probes/touch", {"widgetId": widget}, **{"X-Request-Id": "same"})
        answers.append(response.content.decode().replace(widget, "it"))
    assert answers[0] == answers[1]
    assert json.loads(answers[0])["status"] == 404


@pytest.mark.parametrize("hostile", ["' OR '1'='1", "%", "../t1", "t1\x00", "T1", " t1", "t1 ", "🦊"])
def test_a_hostile_id_finds_nothing(caller: Caller, hostile: str) -> None:
    response = caller.post("plugins/probe/probes/touch", {"widgetId": hostile})
    assert response.status_code in (400, 404)


def test_the_handler_gets_the_tenant_of_the_record(caller: Caller) -> None:
    Widget.objects.create(id="ours", tenant_id="t1")
    response = caller.post("plugins/probe/probes/touch", {"widgetId": "ours"})
    assert json.loads(response.content) == {"value": "t1"}


def test_a_superusers_token_stays_in_its_tenant_and_off_the_installation(make_caller: MakeCaller) -> None:
    caller = make_caller("t1", name="root", is_superuser=True)
    assert caller.probe("peek").status_code == 200
    assert problem(caller.post("plugins/probe/probes/peek", {"tenantId": "t2"})) == (404, "NOT_FOUND")
    response = caller.post("system/version")
    assert problem(response) == (403, "ACCESS_DENIED")
    assert json.loads(response.content)["reason"] == "INSTALLATION_ONLY"


def test_a_token_of_the_installation_acts_where_its_user_may(make_caller: MakeCaller) -> None:
    everywhere = make_caller(None, *EVERYTHING, "any_tenant", name="everywhere")
    nowhere = make_caller(None, *EVERYTHING, name="nowhere")
    assert everywhere.probe("peek").status_code == 200
    assert everywhere.post("system/version").status_code == 200
    assert nowhere.post("system/version").status_code == 200
    assert problem(nowhere.probe("peek")) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("actions", "fields", "status"),
    [
        ((), {"is_superuser": True}, 200),
        ((READ, "any_tenant"), {}, 200),
        (("any_tenant",), {}, 403),
        ((READ,), {}, 404),
        ((), {}, 404),
    ],
)
def test_a_session_acts_in_every_tenant_only_with_leave(
    db: None, client: Client, actions: tuple[str, ...], fields: dict[str, Any], status: int
) -> None:
    client.force_login(make_user("olga", *actions, **fields))
    assert client.get("/api/compute/plugins/probe/probes/peek?tenantId=t9").status_code == status


def test_a_permission_taken_away_counts_from_the_next_call_on(caller: Caller) -> None:
    assert caller.probe("peek").status_code == 200
    Permission.objects.filter(codename="probe:read").delete()
    assert problem(caller.probe("peek")) == (403, "ACCESS_DENIED")


def test_a_permission_taken_away_counts_for_a_long_lived_principal(db: None) -> None:
    user = make_user("mary", READ)
    principal = Principal(id="m", kind="token", tenant_id="t1", user=user)
    judge = authorize.DjangoPermissions()
    assert judge.authorize(principal, READ, Resource("tenant", "t1"), "t1").allowed
    user.user_permissions.clear()
    assert not judge.authorize(principal, READ, Resource("tenant", "t1"), "t1").allowed


def test_there_is_one_permission_for_every_action(db: None) -> None:
    create_permissions()
    create_permissions()
    named = set(Permission.objects.filter(content_type__app_label="compute").values_list("codename", flat=True))
    assert {"acme:poke", "acme:read", "system:read", "work:requeue", "any_tenant", "probe:write"} <= named


def test_a_long_action_keeps_a_codename_of_its_own() -> None:
    area = "a" * 64
    one, two = (authorize.codename(f"compute:{area}:{'v' * 62}{end}") for end in ("x", "y"))
    assert len(one) == len(two) == 100
    assert one != two
    assert authorize.codename("compute:acme:poke") == "acme:poke"


class NoOne:
    """Lets nobody do anything, and keeps what it was asked."""

    asked: list[Any] = []

    def authorize(self, principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> Decision:
        self.asked.append((principal.tenant_id, action, resource, tenant_id))
        return Decision(allowed=False, reason="CLOSED")


@override_settings(COMPUTE={"IAM": "tests.envelope.test_authorization.NoOne"})
def test_another_authorizer_takes_the_place_of_the_default(caller: Caller) -> None:
    response = caller.probe("write")
    assert json.loads(response.content)["reason"] == "CLOSED"
    assert NoOne.asked[-1] == ("t1", WRITE, Resource("tenant", "t1"), "t1")


@pytest.mark.parametrize("path", ["no.such.thing", "nonsense", "json.dumps"])
def test_an_authorizer_that_is_none_is_a_configuration_error(caller: Caller, path: str) -> None:
    with override_settings(COMPUTE={"IAM": path}), pytest.raises(ComputeError, match="IAM") as caught:
        authorize.authorizer()
    assert caught.value.code == "INVALID_CONFIG"


class Broken:
    """Fails to answer."""

    def authorize(self, *_: Any) -> Decision:
        raise RuntimeError("the authorizer is down")


@override_settings(COMPUTE={"IAM": "tests.envelope.test_authorization.Broken"})
def test_an_authorizer_that_fails_allows_nothing(caller: Caller) -> None:
    before = count_rows()
    assert problem(caller.probe("write")) == (500, "INTERNAL_ERROR")
    assert grown(before) == {"compute_audit_events": 1}
