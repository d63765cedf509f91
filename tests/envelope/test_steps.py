"""A call is made to fail at every step of its order (docs/concepts/call.md); rows are counted before and after.

What PostgreSQL does fails inside PostgreSQL, not in a stand-in. A failure leaves nothing but its record, and nothing
that keeps the same call, with the same Idempotency-Key, from being made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import OperationalError, connection
from django.http import HttpResponse
from django.test import RequestFactory, override_settings
from psycopg.errors import QueryCanceled

from better_compute.envelope import admission, codec, http
from better_compute.registry import current
from better_compute.store import idempotency, transaction
from tests.envelope import conftest
from tests.envelope.conftest import Caller
from tests.envelope.probe import write_everything

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "plugins/probe/probes/write"
BODY: dict[str, Any] = {"tenantId": "t1"}
KEY = {"Idempotency-Key": "k1"}
RECORDED = {"compute_audit_events": 1}
DONE = {
    "plg_acme_widget": 1,
    "compute_outbox": 1,
    "compute_work": 1,
    "compute_audit_events": 1,
    "compute_idempotency": 1,
}


@pytest.fixture(autouse=True)
def _count_answers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "TABLES", (*conftest.TABLES, "compute_idempotency"))


def sql(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params or None)


def write(caller: Caller) -> HttpResponse:
    """The call that every step is tried with."""
    return caller.post(PATH, BODY, **KEY)


@contextmanager
def refused_by_the_database(table: str, when: str = "true", *, deferred: bool = False) -> Iterator[None]:
    """Let every INSERT fail of which ``when`` holds, at once or at COMMIT."""
    sql(
        "CREATE FUNCTION made_to_fail() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'hunter2' USING ERRCODE = 'XX001'; END $$"
    )
    kind = ("CONSTRAINT", "AFTER", "DEFERRABLE INITIALLY DEFERRED") if deferred else ("", "BEFORE", "")
    sql(
        f"CREATE {kind[0]} TRIGGER made_to_fail {kind[1]} INSERT ON {table} {kind[2]} FOR EACH ROW"
        f" WHEN ({when}) EXECUTE FUNCTION made_to_fail()"
    )
    try:
        yield
    finally:
        sql("DROP FUNCTION made_to_fail() CASCADE")


@contextmanager
def cut_off_at_commit() -> Iterator[None]:
    """End the session while it commits."""
    sql(
        "CREATE FUNCTION cut_off() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER cut_off AFTER INSERT ON plg_acme_widget DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION cut_off()"
    )
    try:
        yield
    finally:
        sql("DROP FUNCTION cut_off() CASCADE")


@contextmanager
def suspended() -> Iterator[None]:
    """The tenant may do nothing for a while."""
    sql(
        "INSERT INTO compute_tenant_states (tenant_id, state, reason, blockers, passes) VALUES"
        " ('t1', 'suspended', '', '[]', 0)"
    )
    yield
    sql("DELETE FROM compute_tenant_states")


@contextmanager
def not_allowed() -> Iterator[None]:
    """The caller's user lacks the permission for a while."""
    users = list(Permission.objects.get(codename="probe:write").user_set.all())
    for user in users:
        user.user_permissions.remove(Permission.objects.get(codename="probe:write"))
    yield
    for user in users:
        user.user_permissions.add(Permission.objects.get(codename="probe:write"))


@contextmanager
def broken_authorizer() -> Iterator[None]:
    """Whoever judges cannot."""
    with override_settings(COMPUTE={"IAM": "tests.envelope.test_authorization.Broken"}):
        yield


@contextmanager
def patched(where: Any, name: str, instead: Callable[..., Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, instead)
        yield


def fails(*_: Any, **__: Any) -> Any:
    raise RuntimeError("made to fail")


def unreadable(*_: Any, **__: Any) -> Any:
    raise OperationalError from QueryCanceled()


@contextmanager
def the_key_is_busy() -> Iterator[None]:
    """Another session holds the lock of the caller's key, whoever that is."""
    taken: list[int] = []
    original = idempotency.Claim.lock_id
    other = connection.copy()

    def held(claim: idempotency.Claim) -> int:
        if not taken:
            taken.append(original(claim))
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_lock(%s)", taken)
        return original(claim)

    with closing(other), patched(idempotency.Claim, "lock_id", held):
        yield


@dataclass(frozen=True)
class Step:
    """A step of the call's order, how it is made to fail, and what is left then."""

    name: str
    status: int
    code: str
    left: dict[str, int]
    fault: Callable[[], AbstractContextManager[Any]] = nullcontext
    send: Callable[[Caller], HttpResponse] = write


def raw(caller: Caller, **meta: Any) -> HttpResponse:
    """A request as WSGI hands it on, so that its headers may say anything."""
    body = json.dumps(BODY).encode()
    request = RequestFactory().post(
        f"/api/compute/{PATH}",
        body,
        **{"content_type": "application/json", "wsgi.input": BytesIO(body), **meta},
        headers={"Authorization": f"Bearer {caller.secret}", **KEY},
    )
    return http.serve(current().methods[PATH], request)


STEPS = [
    Step("route", 404, "NOT_FOUND", {}, send=lambda c: c.post("plugins/probe/probes/writes", BODY, **KEY)),
    Step("verb", 405, "METHOD_NOT_ALLOWED", {}, send=lambda c: c.get(f"{PATH}?tenantId=t1", **KEY)),
    Step("length", 411, "LENGTH_REQUIRED", {}, send=lambda c: raw(c, CONTENT_LENGTH="many")),
    Step("chunks", 411, "LENGTH_REQUIRED", {}, send=lambda c: raw(c, HTTP_TRANSFER_ENCODING="chunked")),
    Step("size", 413, "PAYLOAD_TOO_LARGE", {}, send=lambda c: raw(c, CONTENT_LENGTH="9" * 12)),
    Step("media type", 415, "UNSUPPORTED_MEDIA_TYPE", {}, send=lambda c: raw(c, content_type="text/plain")),
    Step("key's form", 400, "INVALID_INPUT", {}, send=lambda c: c.post(PATH, BODY, **{"Idempotency-Key": " "})),
    Step("database", 503, "STORAGE_BUSY", {}, fault=lambda: patched(connection, "set_autocommit", unreadable)),
    Step("authentication", 401, "UNAUTHENTICATED", {}, send=lambda c: write(Caller("bct_nobody", c.client))),
    Step("arrival", 400, "INVALID_INPUT", {}, send=lambda c: raw(c, CONTENT_LENGTH="1000")),
    Step("decoding", 400, "INVALID_INPUT", {}, send=lambda c: c.post(PATH, {"tenantId": 1}, **KEY)),
    Step("owner", 503, "STORAGE_BUSY", RECORDED, fault=lambda: patched(admission, "_owner", unreadable)),
    Step("other tenant", 404, "NOT_FOUND", RECORDED, send=lambda c: c.post(PATH, {"tenantId": "t2"}, **KEY)),
    Step("authorizer", 500, "INTERNAL_ERROR", RECORDED, fault=broken_authorizer),
    Step("authorization", 403, "ACCESS_DENIED", RECORDED, fault=not_allowed),
    Step("tenant's state", 409, "INVALID_STATE", RECORDED, fault=suspended),
    Step("busy key", 409, "CONFLICT", RECORDED, fault=the_key_is_busy),
    Step("kept answer", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: patched(idempotency, "read", fails)),
    Step("handler's row", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: refused_by_the_database("plg_acme_widget")),
    Step("event", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: refused_by_the_database("compute_outbox")),
    Step("handler", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: patched_handler(fails)),
    Step("encoding", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: patched(codec, "encode", fails)),
    Step(
        "audit record",
        500,
        "INTERNAL_ERROR",
        RECORDED,
        fault=lambda: refused_by_the_database("compute_audit_events", "NEW.outcome = 'allowed'"),
    ),
    Step("every record", 500, "INTERNAL_ERROR", {}, fault=lambda: refused_by_the_database("compute_audit_events")),
    Step("keeping", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: refused_by_the_database("compute_idempotency")),
    Step("broken", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: patched(transaction, "_refuse_broken", once(fails))),
    Step("work", 500, "INTERNAL_ERROR", RECORDED, fault=lambda: refused_by_the_database("compute_work")),
    Step(
        "deferred constraint",
        500,
        "INTERNAL_ERROR",
        RECORDED,
        fault=lambda: refused_by_the_database("plg_acme_widget", deferred=True),
    ),
    Step("commit", 503, "STORAGE_BUSY", RECORDED, fault=cut_off_at_commit),
]


def once(instead: Callable[..., Any]) -> Callable[..., Any]:
    """Fail the first time, and do as before afterwards: the record of the failure takes the same way."""
    original = transaction._refuse_broken
    left = [instead]
    return lambda *a: (left.pop() if left else original)(*a)


@contextmanager
def patched_handler(instead: Callable[..., Any]) -> Iterator[None]:
    """The method writes everything, and then does something else than to answer."""

    def handler(_: Any, ctx: Any, input: Any) -> Any:
        write_everything(ctx, input)
        return instead()

    with patched(current().methods[PATH].viewset, "write", handler):
        yield


@pytest.mark.parametrize("step", STEPS, ids=[step.name.replace(" ", "-") for step in STEPS])
def test_a_call_that_fails_at_this_step_leaves_only_its_record_and_can_be_made_again(
    caller: Caller, step: Step
) -> None:
    before = conftest.count_rows()
    with step.fault():
        response = step.send(caller)
        assert (response.status_code, json.loads(response.content)["code"]) == (step.status, step.code)
        assert response["Content-Type"] == "application/problem+json"
        assert "hunter2" not in response.content.decode()
    assert conftest.grown(before) == step.left
    if step.left:
        outcome = "denied" if step.status in (403, 404) else "failed"
        assert [(row["outcome"], row["code"]) for row in conftest.audit_rows()] == [(outcome, step.code)]
    between = conftest.count_rows()
    again = write(caller)
    assert (again.status_code, again.headers.get("Idempotency-Replayed")) == (200, None)
    assert conftest.grown(between) == DONE


def test_a_wake_up_that_fails_undoes_nothing_and_the_call_is_a_success(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    before = conftest.count_rows()
    forget = transaction.wake_with(fails)
    try:
        assert write(caller).status_code == 200
    finally:
        forget()
    assert conftest.grown(before) == DONE
    assert "waking workers for acme.widgets failed" in caplog.text


def test_a_key_that_was_used_for_another_input_is_refused_and_recorded(caller: Caller) -> None:
    assert write(caller).status_code == 200
    before = conftest.count_rows()
    response = caller.post(PATH, {**BODY, "widgetId": "w2"}, **KEY)
    assert (response.status_code, json.loads(response.content)["reason"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert conftest.grown(before) == RECORDED


def test_a_dry_run_leaves_nothing_at_any_step(caller: Caller) -> None:
    before = conftest.count_rows()
    assert caller.post(f"{PATH}?dryRun=true", BODY, **KEY).status_code == 200
    with refused_by_the_database("plg_acme_widget", deferred=True):
        assert caller.post(f"{PATH}?dryRun=true", BODY, **KEY).status_code == 500
    assert conftest.grown(before) == RECORDED


def test_the_page_of_the_call_names_the_steps_in_this_order() -> None:
    from tests.docs.snippets import DOCS

    page = DOCS.joinpath("concepts", "call.md").read_text(encoding="utf-8")
    words = ["Route", "length is refused", "who calls", "Decoding", "tenant that owns", "active tenant"]
    words += ["Idempotency-Key", "handler runs", "audit record is written", "work items", "commits", "woken"]
    places = [page.index(word) for word in words]
    assert places == sorted(places)
