"""The core's own groups, ``system`` and ``work``."""

from __future__ import annotations

import dataclasses
import json
import platform
from datetime import timedelta

import django
import pytest
from django.db import connection

import better_compute
from better_compute import compute, registry
from better_compute.contract.module import ProfileDocument
from better_compute.store import pauses, transaction
from better_compute.store.work import WorkRow
from tests.envelope.conftest import Caller, MakeCaller, count_rows, grown

pytestmark = pytest.mark.django_db


def test_the_self_check_is_doctors_report(installation: Caller) -> None:
    response = installation.get("system/selfCheck")
    assert response.status_code == 200, response.content
    found = json.loads(response.content)
    assert set(found) == {"ok", "findings"}
    report = compute.self_check()
    assert found["ok"] == report.ok
    assert [each["check"] for each in found["findings"]] == [each.check for each in report.findings]


def test_versions_of_what_serves(installation: Caller) -> None:
    found = json.loads(installation.get("system/version").content)
    assert found["core"] == better_compute.__version__
    assert found["django"] == django.get_version()
    assert found["python"] == platform.python_version()
    assert int(found["postgresql"].partition(".")[0]) >= 15


def test_modules_stand_in_hosted_order(installation: Caller) -> None:
    found = json.loads(installation.get("system/modules").content)
    hosted = registry.current()
    assert found["fingerprint"] == hosted.fingerprint
    assert [each["name"] for each in found["modules"]] == [spec.name for spec in hosted.modules]
    core, acme = found["modules"][0], next(each for each in found["modules"] if each["name"] == "acme")
    assert (core["label"], core["version"], core["pluginId"]) == ("compute", better_compute.__version__, None)
    assert (acme["label"], acme["pluginId"], acme["methods"], acme["reconcilers"]) == ("plg_acme", "acme", 2, 1)


def test_profiles_are_listed_by_name_and_version(installation: Caller) -> None:
    *others, acme = registry.current().modules
    offered = [ProfileDocument("small", "2", {"cores": 2}), ProfileDocument("small", "1", {"cores": 1})]
    large = ProfileDocument("large", "1", {"cores": 64})
    with registry.override(*others, dataclasses.replace(acme, profiles=(*offered, large))):
        everything = json.loads(installation.get("system/profiles").content)
        small = json.loads(installation.get("system/profiles?name=small&limit=1").content)
        rest = json.loads(installation.get(f"system/profiles?name=small&cursor={small['nextCursor']}").content)
    assert [(each["name"], each["version"]) for each in everything["items"]] == [
        ("large", "1"),
        ("small", "1"),
        ("small", "2"),
    ]
    assert everything["items"][0] == {
        "name": "large",
        "version": "1",
        "module": acme.name,
        "document": {"cores": 64},
    }
    assert [each["document"] for each in small["items"] + rest["items"]] == [{"cores": 1}, {"cores": 2}]


def queue(delay: timedelta) -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", "t1", -1, int(delay.total_seconds() * 1000))])


def test_requeue_makes_a_key_due_now_and_is_audited(installation: Caller) -> None:
    queue(timedelta(hours=1))
    before = count_rows()
    response = installation.post("work/requeue", {"kind": "acme.widgets", "key": "t1"})
    assert (response.status_code, json.loads(response.content)) == (200, {"kind": "acme.widgets", "key": "t1"})
    with connection.cursor() as cursor:
        cursor.execute("SELECT not_before <= compute_now() FROM compute_work WHERE key = 't1'")
        assert cursor.fetchone() == (True,)
    assert grown(before) == {"compute_audit_events": 1}


@pytest.mark.django_db(transaction=True)
def test_requeue_wakes_workers(installation: Caller) -> None:
    queue(timedelta(hours=1))
    seen: list[tuple[str, int]] = []
    stop = transaction.wake_with(lambda kind, shard: seen.append((kind, shard)))
    try:
        installation.post("work/requeue", {"kind": "acme.widgets", "key": "t1"})
    finally:
        stop()
    assert seen == [("acme.widgets", -1)]


@pytest.mark.parametrize(("kind", "key"), [("acme.widgets", "absent"), ("no.such", "t1")])
def test_requeue_of_what_is_not_queued_is_not_found(installation: Caller, kind: str, key: str) -> None:
    response = installation.post("work/requeue", {"kind": kind, "key": key})
    assert (response.status_code, json.loads(response.content)["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(("kind", "key"), [("Bad!", "x"), ("a\n", "x"), ("a", ""), ("a", "k" * 513), ("a", "\x00")])
def test_requeue_refuses_what_can_be_no_key(installation: Caller, kind: str, key: str) -> None:
    assert installation.post("work/requeue", {"kind": kind, "key": key}).status_code == 400


@pytest.mark.parametrize("method", ["system/version", "system/modules", "system/selfCheck"])
def test_a_tenants_token_learns_nothing_of_the_installation(caller: Caller, method: str) -> None:
    assert caller.get(method).status_code == 403


def paused_scopes(installation: Caller) -> list[tuple[str | None, str | None, str]]:
    found = json.loads(installation.get("work/paused").content)["paused"]
    return [(each["kind"], each["member"], each["reason"]) for each in found]


def test_a_kind_is_paused_and_resumed_and_both_are_audited(installation: Caller) -> None:
    before = count_rows()
    response = installation.post("work/pause", {"kind": "acme.widgets", "reason": "incident 7"})
    assert response.status_code == 200, response.content
    assert json.loads(response.content)["pausedBy"].startswith("token/")
    assert paused_scopes(installation) == [("acme.widgets", None, "incident 7")]
    assert grown(before)["compute_audit_events"] == 1
    assert installation.post("work/resume", {"kind": "acme.widgets"}).status_code == 200
    assert paused_scopes(installation) == []
    assert grown(before) == {"compute_audit_events": 2}


def test_a_member_that_is_gone_can_be_resumed_but_not_paused(installation: Caller) -> None:
    assert installation.post("work/pause", {"member": "gone", "reason": "x"}).status_code == 404
    with connection.cursor() as cursor:
        pauses.pause(cursor, "member:gone", reason="x", by="test")
    assert paused_scopes(installation) == [(None, "gone", "x")]
    assert installation.post("work/resume", {"member": "gone"}).status_code == 200


def test_what_is_not_paused_cannot_be_resumed(installation: Caller) -> None:
    response = installation.post("work/resume", {"kind": "acme.widgets"})
    assert (response.status_code, json.loads(response.content)["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("wrong", [{}, {"kind": "acme.widgets", "member": "m"}, {"kind": "Bad!"}, {"member": ""}])
@pytest.mark.parametrize("method", ["work/pause", "work/resume"])
def test_exactly_one_of_kind_and_member_is_named(installation: Caller, method: str, wrong: dict[str, str]) -> None:
    reason = {"reason": "x"} if method == "work/pause" else {}
    assert installation.post(method, {**wrong, **reason}).status_code == 400


def test_pausing_needs_its_own_permission(make_caller: MakeCaller) -> None:
    requeuer = make_caller(None, "compute:work:requeue", "compute:work:read", name="rita")
    assert requeuer.post("work/pause", {"kind": "acme.widgets", "reason": "x"}).status_code == 403
    assert paused_scopes(requeuer) == []
