"""``ctx.events`` in a call: its own tenant's events, with data that JSON can carry."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from django.db import connection, transaction

from better_compute.store import outbox
from tests.envelope.conftest import Caller, count_rows, grown

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_publishes_for_its_own_tenant_only(caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
    before = count_rows()
    assert caller.probe("publish", extra="t2").status_code == 500
    assert "Event 'probe.published' is of the tenant 't2', and the call acts in 't1'" in caplog.text
    assert "compute_outbox" not in grown(before)
    assert caller.probe("publish", extra="t1").status_code == 200


def test_a_caller_who_may_do_the_same_elsewhere_publishes_for_elsewhere(installation: Caller) -> None:
    before = count_rows()
    assert installation.probe("publish", extra="t2").status_code == 200
    assert grown(before)["compute_outbox"] == 1


def test_a_call_on_the_installation_publishes_for_any_tenant(installation: Caller) -> None:
    before = count_rows()
    assert installation.post("plugins/probe/probes/announce", {"tenantId": "t2"}).status_code == 200
    assert grown(before)["compute_outbox"] == 1


class Reading(msgspec.Struct):
    value: float


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({"a": float("nan")}, "NaN or an infinity"),
        ({"a": [{"b": float("-inf")}]}, "NaN or an infinity"),
        ({"a": Reading(float("inf"))}, "NaN or an infinity"),
        ({"a": "\ud800"}, "cannot be written as JSON"),
        ({"a": object()}, "cannot be written as JSON"),
        ({"a": ["x\0y"]}, "NUL character"),
        ({"x\0y": 1}, "NUL character"),
    ],
)
def test_data_that_json_cannot_carry_is_refused(data: dict[str, Any], what: str) -> None:
    before = count_rows()
    with pytest.raises(ValueError, match=what), transaction.atomic():
        outbox.insert(type="a.b", tenant_id="t1", subject="s", data=data)
    assert grown(before) == {}


@pytest.mark.parametrize("data", [{"a": None}, {"a": "null"}, {"a": "\\u0000"}, {"a": [1.5, Reading(2)]}])
def test_data_that_only_looks_like_it_is_kept(data: dict[str, Any]) -> None:
    with transaction.atomic():
        outbox.insert(type="a.b", tenant_id="t1", subject="s", data=data)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM compute_outbox")
        assert cursor.fetchone() == (1,)
