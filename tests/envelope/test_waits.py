"""No statement of a call waits longer for another session's lock than the call's statements may run."""

from __future__ import annotations

import logging

import pytest
from django.test import override_settings

from better_compute.access import Token
from tests.envelope.conftest import Caller, count_rows, grown
from tests.locks import locked

pytestmark = pytest.mark.django_db(transaction=True)

bounded = override_settings(COMPUTE={"CALL": {"STATEMENT_TIMEOUT_MS": 200}})


@bounded
def test_the_first_statement_waits_no_longer_than_the_others(caller: Caller) -> None:
    assert caller.probe("peek").status_code == 200
    before = count_rows()
    with locked("LOCK TABLE compute_tokens IN ACCESS EXCLUSIVE MODE"):
        assert caller.probe("peek").status_code == 503
        assert caller.probe("write").status_code == 503
    assert grown(before) == {}


@bounded
@pytest.mark.parametrize(("tenant_id", "status"), [("t1", 503), ("t2", 404)])
def test_a_call_whose_record_cannot_be_written_is_answered(
    caller: Caller, caplog: pytest.LogCaptureFixture, tenant_id: str, status: int
) -> None:
    before = count_rows()
    with locked("LOCK TABLE compute_audit_events IN ACCESS EXCLUSIVE MODE"):
        response = caller.post("plugins/probe/probes/write", {"tenantId": tenant_id})
    assert response.status_code == status
    assert grown(before) == {}
    assert "could not be recorded" in caplog.text


def test_a_committed_call_does_not_wait_for_the_row_of_its_token(caller: Caller) -> None:
    with locked("SELECT FROM compute_tokens FOR UPDATE"):
        assert caller.probe("write").status_code == 200
    assert Token.objects.get().last_used_at is None
    caller.probe("peek")
    assert Token.objects.get().last_used_at is not None


@bounded
def test_a_committed_call_waits_for_the_table_of_tokens_no_longer_than_for_anything(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), locked("LOCK TABLE compute_tokens IN SHARE MODE"):
        assert caller.probe("write").status_code == 200
    assert "The use of a token could not be noted" in caplog.text
