"""What an audit record says, and that its hash can be computed again from its parts."""

from __future__ import annotations

import hashlib
import json

import pytest
from django.db import IntegrityError, connection, transaction

from tests.envelope.conftest import Caller, audit_rows

pytestmark = pytest.mark.django_db


def test_a_record_tells_who_did_what_to_what(caller: Caller) -> None:
    caller.post("plugins/probe/probes/write", {"tenantId": "t1"}, **{"X-Request-Id": "r-1"})
    (row,) = audit_rows()
    assert row["principal"].startswith("token/")
    assert {name: row[name] for name in ("tenant_id", "method", "action", "resource_type", "resource_id")} == {
        "tenant_id": "t1",
        "method": "plugins.probe.probes.write",
        "action": "compute:probe:write",
        "resource_type": "tenant",
        "resource_id": "t1",
    }
    assert (row["outcome"], row["code"], row["request_id"]) == ("allowed", None, "r-1")


def test_the_canonical_bytes_hold_every_column_sorted_and_without_white_space(caller: Caller) -> None:
    caller.probe("refuse", extra="IN_USE")
    (row,) = audit_rows()
    canonical = bytes(row["canonical"])
    members = json.loads(canonical)
    assert json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == canonical
    assert members == {
        "form": 1,
        "id": str(row["id"]),
        "at": row["at"].isoformat(timespec="microseconds"),
        "tenantId": "t1",
        "principal": row["principal"],
        "method": row["method"],
        "action": row["action"],
        "resourceType": "tenant",
        "resourceId": "t1",
        "outcome": "failed",
        "code": "IN_USE",
        "requestId": row["request_id"],
    }


def test_the_leaf_hash_is_rfc_6962s_over_salt_and_canonical(caller: Caller) -> None:
    caller.probe("write")
    caller.probe("write", widgetId="w2")
    rows = audit_rows()
    for row in rows:
        assert len(row["salt"]) == 16
        leaf = hashlib.sha256(b"\x00" + bytes(row["salt"]) + bytes(row["canonical"])).digest()
        assert bytes(row["leaf_hash"]) == leaf
    assert bytes(rows[0]["salt"]) != bytes(rows[1]["salt"])


def test_a_record_of_the_installation_has_no_tenant(installation: Caller) -> None:
    installation.post("work/requeue", {"kind": "acme.widgets", "key": "nothing"})
    (row,) = audit_rows()
    assert (row["tenant_id"], row["resource_type"], row["resource_id"]) == ("", "system", "work/acme.widgets/nothing")


def test_a_denial_is_recorded_in_the_tenant_that_was_reached_for(caller: Caller) -> None:
    caller.post("plugins/probe/probes/write", {"tenantId": "t2"})
    (row,) = audit_rows()
    assert (row["tenant_id"], row["outcome"], row["code"]) == ("t2", "denied", "NOT_FOUND")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE compute_audit_events SET principal = 'x'",
        "DELETE FROM compute_audit_events",
        "TRUNCATE compute_audit_events",
        "TRUNCATE compute_audit_events_default",
    ],
)
def test_a_record_cannot_be_changed(caller: Caller, statement: str) -> None:
    caller.probe("write")
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert len(audit_rows()) == 1
