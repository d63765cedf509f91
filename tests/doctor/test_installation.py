"""Doctor over what is really installed, through each of its doors."""

from __future__ import annotations

import json
from io import StringIO

import msgspec
import pytest
from django.core.management import call_command

from better_compute import Principal, compute, doctor


@pytest.mark.django_db(transaction=True)
def test_only_the_missing_worker_is_reported_of_the_example_project() -> None:
    report = doctor.report()
    assert report.ok
    assert {finding.check for finding in report.findings} <= {"leases.unheld"}


@pytest.mark.django_db(transaction=True)
def test_every_door_gives_the_same_answer(admin_user: object) -> None:
    out = StringIO()
    call_command("doctor", "--format", "json", stdout=out)
    caller = Principal(id="user/admin", kind="session", user=admin_user)
    answer = compute.api.system.self_check(caller)
    assert json.loads(out.getvalue()) == json.loads(msgspec.json.encode(compute.self_check()))
    assert json.loads(msgspec.json.encode(answer)) == json.loads(out.getvalue())
