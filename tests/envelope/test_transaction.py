"""One call, one transaction: whatever fails, nothing of it stays but the record of the refusal."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, OperationalError, connection, connections
from django.http import HttpResponse
from django.test import override_settings

from better_compute import ComputeError, Principal, compute
from better_compute.envelope import admission, codec
from better_compute.envelope.problem import refusal
from better_compute.store import audit, outbox, preamble, transaction, work
from tests.envelope.conftest import Caller, audit_rows, count_rows, grown
from tests.envelope.probe import AFTER_COMMIT, REFUSALS, Number

pytestmark = pytest.mark.django_db(transaction=True)

REFUSAL_ONLY = {"compute_audit_events": 1}


def problem(response: HttpResponse) -> tuple[int, str]:
    assert response["Content-Type"] == "application/problem+json", response.content
    return response.status_code, json.loads(response.content)["code"]


def test_a_call_commits_row_event_work_and_audit_together(caller: Caller) -> None:
    before = count_rows()
    assert caller.probe("write").status_code == 200
    assert grown(before) == {
        "plg_acme_widget": 1,
        "compute_outbox": 1,
        "compute_work": 1,
        "compute_audit_events": 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT xid FROM compute_outbox)"
            " = (SELECT xid FROM compute_audit_events WHERE resource_type <> 'token')"
        )
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize(
    ("method", "status", "code"),
    [
        ("crash", 500, "INTERNAL_ERROR"),
        ("answerUnencodable", 500, "INTERNAL_ERROR"),
        ("answerSurrogate", 500, "INTERNAL_ERROR"),
        ("swallow", 500, "INTERNAL_ERROR"),
    ],
)
def test_a_failing_method_leaves_only_the_record_of_its_failure(
    caller: Caller, method: str, status: int, code: str
) -> None:
    before = count_rows()
    assert problem(caller.probe(method)) == (status, code)
    assert grown(before) == REFUSAL_ONLY
    assert [(row["outcome"], row["code"]) for row in audit_rows()] == [("failed", code)]


@pytest.mark.parametrize("how", ["psycopg", "ROLLBACK", "ROLLBACK; BEGIN", "ROLLBACK AND CHAIN", "ABORT; SELECT 1"])
def test_a_method_that_ends_the_transaction_is_no_success_and_leaves_nothing(caller: Caller, how: str) -> None:
    before = count_rows()
    assert problem(caller.probe("endTheTransaction", extra=how)) == (500, "INTERNAL_ERROR")
    assert grown(before) == REFUSAL_ONLY
    assert [row["outcome"] for row in audit_rows()] == ["failed"]


@pytest.mark.parametrize("how", ["COMMIT", "COMMIT; BEGIN", "COMMIT AND CHAIN"])
def test_a_method_that_commits_by_itself_is_no_success_and_is_recorded_as_failed(caller: Caller, how: str) -> None:
    before = count_rows()
    assert problem(caller.probe("endTheTransaction", extra=how)) == (500, "INTERNAL_ERROR")
    assert "compute_work" not in grown(before)
    assert [row["outcome"] for row in audit_rows()] == ["failed"]


def test_a_dry_run_that_ends_the_transaction_is_told(caller: Caller) -> None:
    response = caller.post(
        "plugins/probe/probes/endTheTransaction?dryRun=true", {"tenantId": "t1", "extra": "ROLLBACK; BEGIN"}
    )
    assert problem(response) == (500, "INTERNAL_ERROR")


def test_a_query_cannot_write_in_a_transaction_of_its_own(caller: Caller) -> None:
    before = count_rows()
    assert problem(caller.probe("escape")) == (500, "INTERNAL_ERROR")
    assert grown(before) == {}


def test_a_callback_that_raises_after_commit_is_logged_and_the_call_is_a_success(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    before = count_rows()
    AFTER_COMMIT.clear()
    assert caller.probe("raiseAfterCommit").status_code == 200
    assert grown(before)["plg_acme_widget"] == 1
    assert [row["outcome"] for row in audit_rows()] == ["allowed"]
    assert "raised after commit" in caplog.text
    assert AFTER_COMMIT == ["w1"]


@pytest.mark.parametrize("how", ["none", "nan", "text"])
def test_an_answer_that_is_not_as_declared_is_a_defect_logged_with_its_place(
    caller: Caller, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    before = count_rows()
    assert problem(caller.probe("answerUndeclared", extra=how)) == (500, "INTERNAL_ERROR")
    assert grown(before) == REFUSAL_ONLY
    assert "plugins.probe.probes.answerUndeclared" in caplog.text
    assert ("at '/value'" in caplog.text) == (how != "none")


def test_an_answer_given_as_a_mapping_goes_out_as_declared(caller: Caller) -> None:
    assert json.loads(caller.probe("answerUndeclared", extra="fine").content) == {"value": 1.5}
    response = caller.probe("answerUndeclared", widgetId="w2", extra="more")
    assert (response.status_code, b"hunter2" in response.content) in ((200, False), (500, False))


def test_an_answer_that_is_not_as_declared_is_refused_in_process_too() -> None:
    me = Principal(id="job/test", kind="internal")
    with pytest.raises(ComputeError) as caught:
        compute.api.plugins.probe.probes.answer_undeclared(me, {"tenantId": "t1", "extra": "text"})
    assert caught.value.code == "INTERNAL_ERROR"
    answer = compute.api.plugins.probe.probes.answer_undeclared(me, {"tenantId": "t1", "extra": "fine"})
    assert answer == Number(value=1.5)


def test_a_resource_that_cannot_be_told_is_a_defect_and_no_act(caller: Caller) -> None:
    before = count_rows()
    assert problem(caller.probe("unresourceful")) == (500, "INTERNAL_ERROR")
    assert grown(before) == {}


def _raise(*_: Any, **__: Any) -> None:
    raise RuntimeError("made to fail")


@pytest.mark.parametrize(
    ("where", "name"),
    [(outbox, "insert"), (codec, "encode"), (work, "upserting"), (transaction, "_refuse_broken")],
    ids=["event", "encoding", "work", "commit"],
)
def test_a_failure_at_any_later_step_rolls_everything_back(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, where: Any, name: str
) -> None:
    before = count_rows()
    failures = iter([_raise])
    original: Callable[..., Any] = getattr(where, name)
    monkeypatch.setattr(where, name, lambda *a, **k: next(failures, original)(*a, **k))
    assert problem(caller.probe("write")) == (500, "INTERNAL_ERROR")
    assert grown(before) == REFUSAL_ONLY


def test_a_failing_audit_record_rolls_the_call_back_and_hides_nothing(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = count_rows()
    monkeypatch.setattr(audit, "insert", _raise)
    assert problem(caller.probe("write")) == (500, "INTERNAL_ERROR")
    assert problem(caller.probe("refuse", extra="IN_USE")) == (409, "IN_USE")
    assert grown(before) == {}


def test_a_commit_that_fails_is_no_success(caller: Caller) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE deferred_probe (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);"
            "INSERT INTO deferred_probe VALUES (1)"
        )
    try:
        before = count_rows()
        response = caller.probe("runSql", extra="INSERT INTO deferred_probe VALUES (1)")
        assert problem(response) == (409, "CONFLICT")
        assert grown(before) == REFUSAL_ONLY
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE deferred_probe")


def test_a_unique_violation_names_the_columns_and_no_value(caller: Caller) -> None:
    assert caller.probe("write").status_code == 200
    response = caller.probe("write")
    assert problem(response) == (409, "CONFLICT")
    assert json.loads(response.content)["detail"] == "A record with this id exists already."


def test_an_error_inside_a_savepoint_is_legal(caller: Caller) -> None:
    before = count_rows()
    assert caller.probe("getOrCreate").status_code == 200
    assert grown(before)["plg_acme_widget"] == 1


@pytest.mark.parametrize("code", REFUSALS)
def test_every_code_a_method_raises_reaches_the_caller_as_its_status(caller: Caller, code: str) -> None:
    before = count_rows()
    response = caller.probe("refuse", extra=code)
    found = json.loads(response.content)
    assert (found["code"], found["status"], found["mend"]) == (code, response.status_code, "Ask otherwise.")
    assert response["Retry-After"] == "7"
    assert grown(before) == REFUSAL_ONLY
    assert audit_rows()[0]["outcome"] == ("denied" if code == "ACCESS_DENIED" else "failed")


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        ("23505", 409, "CONFLICT"),
        ("40001", 503, "STORAGE_BUSY"),
        ("40P01", 503, "STORAGE_BUSY"),
        ("55P03", 503, "STORAGE_BUSY"),
        ("57014", 503, "STORAGE_BUSY"),
        ("25006", 503, "STORAGE_BUSY"),
        ("08006", 503, "STORAGE_BUSY"),
        ("22012", 500, "INTERNAL_ERROR"),
        ("XX000", 500, "INTERNAL_ERROR"),
    ],
)
def test_a_database_error_is_told_by_its_state_and_never_by_its_text(
    caller: Caller, caplog: pytest.LogCaptureFixture, state: str, status: int, code: str
) -> None:
    before = count_rows()
    block = f"DO $$ BEGIN RAISE EXCEPTION 'hunter2 text' USING ERRCODE = '{state}'; END $$"
    response = caller.probe("runSql", extra=block)
    assert problem(response) == (status, code)
    assert ("Retry-After" in response) == (status == 503)
    assert grown(before) == REFUSAL_ONLY
    assert "hunter2" not in response.content.decode()
    assert "hunter2" not in caplog.text
    assert "RAISE" not in response.content.decode() + caplog.text


def test_a_lost_connection_is_503_and_the_next_call_works(caller: Caller) -> None:
    before = count_rows()
    response = caller.probe("runSql", extra="SELECT pg_terminate_backend(pg_backend_pid())")
    assert problem(response) == (503, "STORAGE_BUSY")
    assert caller.probe("write").status_code == 200
    assert grown(before)["plg_acme_widget"] == 1


@override_settings(COMPUTE={"CALL": {"STATEMENT_TIMEOUT_MS": 50}})
def test_a_statement_that_runs_too_long_is_503(caller: Caller) -> None:
    before = count_rows()
    assert problem(caller.probe("runSql", extra="SELECT pg_sleep(5)")) == (503, "STORAGE_BUSY")
    assert grown(before) == REFUSAL_ONLY


def test_the_limits_of_a_call_end_with_it(caller: Caller) -> None:
    assert caller.probe("peek").status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('transaction_read_only')")
        assert cursor.fetchone() == ("0", "off")


def test_an_unknown_defect_is_told_by_its_request_id_and_logged_under_it(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    response = caller.post("plugins/probe/probes/crash", {"tenantId": "t1"}, **{"X-Request-Id": "find-me"})
    assert "hunter2" not in response.content.decode()
    assert "find-me" in json.loads(response.content)["mend"]
    entry = next(record for record in caplog.records if record.name == "better_compute.call")
    assert "find-me" in entry.getMessage()
    assert entry.levelno == logging.ERROR


def test_a_query_is_read_only_and_leaves_no_record(caller: Caller) -> None:
    before = count_rows()
    assert caller.probe("peek").status_code == 200
    assert problem(caller.probe("scribble")) == (500, "INTERNAL_ERROR")
    assert grown(before) == {}


def test_a_denied_query_is_recorded(caller: Caller) -> None:
    before = count_rows()
    assert caller.post("plugins/probe/probes/peek", {"tenantId": "t2"}).status_code == 404
    assert grown(before) == REFUSAL_ONLY
    assert audit_rows()[0]["outcome"] == "denied"


@pytest.mark.parametrize("method", ["write", "crash", "refuse", "getOrCreate"])
def test_atomic_requests_of_the_host_change_nothing(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    before = count_rows()
    status = caller.probe(method, extra="IN_USE").status_code
    expected = {"write": 200, "crash": 500, "refuse": 409, "getOrCreate": 200}[method]
    assert status == expected
    assert grown(before).get("plg_acme_widget", 0) == (1 if status == 200 else 0)
    assert grown(before)["compute_audit_events"] == 1


def test_a_database_that_is_away_is_503(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused") from psycopg.OperationalError("connection refused")

    with monkeypatch.context() as away:
        away.setattr(connections["default"], "set_autocommit", refuse)
        assert problem(caller.probe("write")) == (503, "STORAGE_BUSY")


@pytest.fixture
def commit_cut_off(transactional_db: None) -> Iterator[None]:
    """The server ends the session while it commits a new widget: a client cannot know whether it was kept."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            CREATE FUNCTION pg_temp_cut_off() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER cut_off AFTER INSERT ON plg_acme_widget
              DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp_cut_off();
            """
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION pg_temp_cut_off() CASCADE")


@pytest.mark.usefixtures("commit_cut_off")
@pytest.mark.django_db(transaction=True)
def test_a_connection_lost_at_commit_does_not_promise_that_nothing_changed(caller: Caller) -> None:
    response = caller.probe("write")
    found = json.loads(response.content)
    assert (found["code"], found["reason"]) == ("STORAGE_BUSY", "OUTCOME_UNKNOWN")
    assert "Idempotency-Key" in found["mend"]
    assert [(row["outcome"], row["code"]) for row in audit_rows()] == [("failed", "STORAGE_BUSY")]


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_was_kept_is_not_recorded_as_failed(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: the connection is lost on the way back, after the server has committed."""
    end = transaction._end

    def lose_the_answer(connection: Any, **how: Any) -> None:
        end(connection, **how)
        monkeypatch.setattr(transaction, "_end", end)
        raise OperationalError("the connection is lost") from psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(transaction, "_end", lose_the_answer)
    found = json.loads(caller.probe("write").content)
    assert (found["code"], found["reason"]) == ("STORAGE_BUSY", "OUTCOME_UNKNOWN")
    assert [row["outcome"] for row in audit_rows()] == ["allowed"]


@pytest.mark.django_db(transaction=True)
def test_a_call_that_sends_nothing_is_ended_and_leaves_nothing(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a process that is frozen, or a body that drips, between two statements."""
    monkeypatch.setattr(preamble, "IDLE_MS", 100)
    before = count_rows()
    assert problem(caller.probe("freeze")) == (503, "STORAGE_BUSY")
    assert grown(before) == REFUSAL_ONLY


def test_a_defect_met_while_a_database_error_is_handled_is_a_defect() -> None:
    def fail() -> None:
        try:
            raise IntegrityError from psycopg.errors.UniqueViolation()
        except IntegrityError:
            raise ValueError("a defect") from None

    with pytest.raises(ValueError, match="a defect") as caught:
        fail()
    assert refusal(caught.value, "r1").code == "INTERNAL_ERROR"


def test_a_failure_while_the_owner_is_looked_up_is_no_denial(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(resource: object) -> None:
        raise OperationalError from psycopg.errors.QueryCanceled()

    monkeypatch.setattr(admission, "_owner", unreadable)
    assert caller.probe("write").status_code == 503
    assert [row["outcome"] for row in audit_rows()] == ["failed"]
