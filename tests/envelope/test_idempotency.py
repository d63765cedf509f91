"""``Idempotency-Key``: one effect, one answer, however often and however concurrently a call is repeated."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event
from typing import Annotated, Any

import msgspec
import pytest
from django.db import connection, connections

from better_compute import ComputeError, Output, Principal, Secret, compute, registry
from better_compute.envelope import call, idempotency
from better_compute.store import idempotency as store, transaction
from better_compute.store.work import WorkRow
from better_compute.testing import advance_clock
from example_project.acme_widgets.api import Poked
from tests.envelope.conftest import EVERYTHING, Caller, MakeCaller, count_rows, grown

POKE = "plugins/acme/widgets/poke"
BODY = {"tenantId": "t1", "widgetId": "w1"}
ONE_EFFECT = {"plg_acme_widget": 1, "compute_outbox": 1, "compute_work": 1, "compute_audit_events": 1}


def code_and_reason(response: Any) -> tuple[str, str]:
    found = json.loads(response.content)
    return found["code"], found["reason"]


@pytest.mark.django_db
class TestOneAfterAnother:
    def test_a_repeated_call_answers_the_same_and_has_its_effect_once(self, caller: Caller) -> None:
        before = count_rows()
        first = caller.post(POKE, BODY, **{"Idempotency-Key": "k1"})
        again = caller.post(POKE, BODY, **{"Idempotency-Key": "k1"})
        assert (first.status_code, again.status_code) == (200, 200)
        assert first.content == again.content
        assert "Idempotency-Replayed" not in first
        assert again["Idempotency-Replayed"] == "true"
        assert grown(before) == ONE_EFFECT

    def test_white_space_and_the_order_of_members_make_no_other_body(self, caller: Caller) -> None:
        caller.post(POKE, BODY, **{"Idempotency-Key": "k1"})
        again = caller.post(POKE, b'{ "widgetId":"w1",  "tenantId":"t1" }', **{"Idempotency-Key": '"k1"'})
        assert again["Idempotency-Replayed"] == "true"

    def test_a_key_that_is_too_long_is_told_with_its_length(self, caller: Caller) -> None:
        answer = caller.post(POKE, BODY, **{"Idempotency-Key": "k" * 300})
        assert answer.status_code == 400
        assert "it has 300 characters" in json.loads(answer.content)["detail"]

    def test_the_same_key_with_another_input_is_refused(self, caller: Caller) -> None:
        caller.post(POKE, BODY, **{"Idempotency-Key": "k1"})
        before = count_rows()
        other = caller.post(POKE, {**BODY, "widgetId": "w2"}, **{"Idempotency-Key": "k1"})
        assert other.status_code == 409
        assert code_and_reason(other) == ("CONFLICT", "IDEMPOTENCY_KEY_REUSED")
        assert grown(before) == {"compute_audit_events": 1}

    def test_a_failed_call_leaves_its_key_free(self, caller: Caller) -> None:
        caller.post(POKE, BODY)
        assert caller.post(POKE, BODY, **{"Idempotency-Key": "k1"}).status_code == 409
        answer = caller.post(POKE, {**BODY, "widgetId": "w2"}, **{"Idempotency-Key": "k1"})
        assert json.loads(answer.content) == {"poked": "w2"}

    def test_a_key_belongs_to_one_principal_tenant_and_method(self, make_caller: MakeCaller) -> None:
        one = make_caller("t1", *EVERYTHING, name="one")
        two = make_caller("t1", *EVERYTHING, name="two")
        everywhere = make_caller(None, *EVERYTHING, "any_tenant", name="everywhere")
        key = {"Idempotency-Key": "same"}
        answers = [
            one.post(POKE, BODY, **key),
            two.post(POKE, {**BODY, "widgetId": "w2"}, **key),
            one.post("plugins/probe/probes/write", {"tenantId": "t1", "widgetId": "w3"}, **key),
            everywhere.post(POKE, {"tenantId": "t1", "widgetId": "w4"}, **key),
            everywhere.post(POKE, {"tenantId": "t2", "widgetId": "w5"}, **key),
        ]
        assert [each.status_code for each in answers] == [200] * 5
        assert not any("Idempotency-Replayed" in each for each in answers)

    def test_a_replay_is_authorized_anew(self, caller: Caller) -> None:
        caller.post(POKE, BODY, **{"Idempotency-Key": "k1"})
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM auth_user_user_permissions")
        assert caller.post(POKE, BODY, **{"Idempotency-Key": "k1"}).status_code == 403

    def test_a_kept_answer_expires_and_is_purged(self, caller: Caller) -> None:
        caller.probe("post", extra=1)
        caller.post("plugins/probe/probes/post", {"tenantId": "t1"}, **{"Idempotency-Key": "k1"})
        advance_clock(timedelta(hours=24, seconds=1))
        again = caller.post("plugins/probe/probes/post", {"tenantId": "t1"}, **{"Idempotency-Key": "k1"})
        assert "Idempotency-Replayed" not in again
        advance_clock(timedelta(hours=24, seconds=1))
        with transaction.transaction():
            assert store.purge(10) == 1
            assert store.purge(10) == 0

    @pytest.mark.parametrize("key", ["", '""', "a b", "é", "x" * 256, 'a"b', "a\tb", "k\x00"])
    def test_a_malformed_key_is_refused(self, caller: Caller, key: str) -> None:
        before = count_rows()
        response = caller.post(POKE, BODY, **{"Idempotency-Key": key})
        assert response.status_code == 400
        assert grown(before) == {}

    def test_a_query_takes_no_notice_of_a_key(self, caller: Caller) -> None:
        for _ in range(2):
            response = caller.get("plugins/acme/widgets/count?tenantId=t1", **{"Idempotency-Key": "k1"})
            assert "Idempotency-Replayed" not in response

    def test_a_repeated_call_in_process_returns_the_methods_type(self) -> None:
        job = Principal(id="job", kind="internal")
        poke = registry.current().methods[POKE]
        answers = [call.call(poke, job, BODY, idempotency_key="k1") for _ in range(2)]
        assert answers == [Poked(poked="w1"), Poked(poked="w1")]


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_of_many_calls_at_once_one_has_its_effect(self) -> None:
        job = Principal(id="job", kind="internal")
        poke = registry.current().methods[POKE]
        at_once = Barrier(6)
        before = count_rows()

        def repeat(_: int) -> str:
            try:
                at_once.wait(10)
                return str(call.call(poke, job, BODY, idempotency_key="k1").poked)
            except ComputeError as error:
                return error.reason
            finally:
                connections.close_all()

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(repeat, range(6)))
        assert set(answers) <= {"w1", "IDEMPOTENCY_KEY_BUSY"}
        assert "w1" in answers
        assert {**grown(before), "compute_audit_events": 1} == ONE_EFFECT

    def test_a_call_that_meets_its_running_twin_is_told_to_come_back(self, caller: Caller) -> None:
        claim = store.Claim("job", "t1", "plugins.acme.widgets.poke", "k1")
        held, release = Event(), Event()

        def hold() -> None:
            with transaction.transaction():
                assert store.lock(claim)
                held.set()
                release.wait(10)
            connections.close_all()

        with ThreadPoolExecutor(1) as pool:
            holding = pool.submit(hold)
            assert held.wait(10)
            try:
                with pytest.raises(ComputeError) as caught:
                    call.call(
                        registry.current().methods[POKE],
                        Principal(id="job", kind="internal"),
                        BODY,
                        idempotency_key="k1",
                    )
            finally:
                release.set()
            holding.result()
        assert (caught.value.code, caught.value.reason) == ("CONFLICT", "IDEMPOTENCY_KEY_BUSY")
        assert caught.value.retry_after == 1

    def test_an_answer_that_is_kept_is_told_to_many_at_once(self, caller: Caller) -> None:
        """Order: one repetition holds the claim, as a slow one does, while another comes."""
        job = Principal(id="job", kind="internal")
        poke = registry.current().methods[POKE]
        first = call.call(poke, job, BODY, idempotency_key="k1")
        claim = store.Claim("job", "t1", "plugins.acme.widgets.poke", "k1")

        def repeat() -> Any:
            try:
                return call.call(poke, job, BODY, idempotency_key="k1")
            finally:
                connections.close_all()

        with ThreadPoolExecutor(1) as pool, transaction.transaction():
            assert store.lock(claim)
            assert pool.submit(repeat).result(20) == first


class Key(Output):
    id: str
    value: Secret


class Keys(Output):
    name: Annotated[str, msgspec.Meta(max_length=5)]
    main: Key
    others: list[Key]
    by_name: dict[str, Key | None]
    token: Secret | None = None


class Nested(Output):
    children: list[Nested]
    value: Secret


def test_secret_fields_are_not_kept() -> None:
    key = Key(id="k", value="hunter2")
    answer = Keys(name="n", main=key, others=[key, key], by_name={"a": key, "b": None}, token="hunter2")
    kept = idempotency.without_secrets(msgspec.json.encode(answer), Keys)
    assert b"hunter2" not in kept
    assert msgspec.json.decode(kept, type=Keys).others[1].id == "k"


def test_a_type_that_holds_itself_ends() -> None:
    answer = Nested(children=[Nested(children=[], value="hunter2")], value="hunter2")
    assert b"hunter2" not in idempotency.without_secrets(msgspec.json.encode(answer), Nested)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[Secret], ["hunter2"]),
        (tuple[Secret, ...], ["hunter2", "hunter2"]),
        (tuple[int, Secret], [1, "hunter2"]),
        (dict[str, Secret], {"a": "hunter2"}),
        (dict[str, list[Secret | None]], {"a": ["hunter2", None]}),
        (list[Key] | None, [{"id": "k", "value": "hunter2"}]),
    ],
)
def test_secrets_in_containers_are_not_kept(annotation: Any, value: Any) -> None:
    assert b"hunter2" not in idempotency.without_secrets(msgspec.json.encode(value), annotation)


def test_an_answer_without_secrets_is_kept_byte_for_byte() -> None:
    assert idempotency.without_secrets(b'{"poked":  "w"}', Poked) == b'{"poked":  "w"}'


@pytest.mark.django_db(transaction=True)
class TestDryRun:
    def test_it_answers_and_keeps_nothing(self, caller: Caller) -> None:
        before = count_rows()
        response = caller.post(f"{POKE}?dryRun=true", BODY)
        assert (response.status_code, json.loads(response.content)) == (200, {"poked": "w1"})
        assert response["Dry-Run"] == "true"
        assert grown(before) == {}
        assert caller.post(f"{POKE}?dryRun=false", BODY).status_code == 200

    def test_it_makes_every_check(self, caller: Caller) -> None:
        assert caller.post(f"{POKE}?dryRun=true", {**BODY, "widgetId": "W!"}).status_code == 400
        assert caller.post(f"{POKE}?dryRun=true", {**BODY, "tenantId": "t2"}).status_code == 404
        assert caller.post("plugins/probe/probes/swallow?dryRun=true", {"tenantId": "t1"}).status_code == 500
        caller.post(POKE, BODY)
        assert caller.post(f"{POKE}?dryRun=true", BODY).status_code == 409

    @pytest.mark.parametrize("asked", ["dryrun=true", "dry_run=true", "dryRun=yes", "dryRun=true&dryRun=false", "x=1"])
    def test_one_that_is_mistyped_commits_nothing(self, caller: Caller, asked: str) -> None:
        before = count_rows()
        answer = caller.post(f"{POKE}?{asked}", BODY)
        assert (answer.status_code, json.loads(answer.content)["code"]) == (400, "INVALID_INPUT")
        assert asked.partition("=")[0] in json.loads(answer.content)["detail"]
        assert grown(before) == {}

    def test_it_checks_deferred_constraints(self, caller: Caller) -> None:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE dry_probe (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        try:
            body = {"tenantId": "t1", "extra": "INSERT INTO dry_probe VALUES (1), (1)"}
            assert caller.post("plugins/probe/probes/runSql?dryRun=true", body).status_code == 409
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE dry_probe")

    def test_it_uses_up_no_idempotency_key(self, caller: Caller) -> None:
        caller.post(f"{POKE}?dryRun=true", BODY, **{"Idempotency-Key": "k1"})
        real = caller.post(POKE, BODY, **{"Idempotency-Key": "k1"})
        assert "Idempotency-Replayed" not in real

    def test_under_a_used_key_it_is_judged_anew_and_the_answer_stays_kept(self, caller: Caller) -> None:
        key = {"Idempotency-Key": "k1"}
        real = caller.post(POKE, BODY, **key)
        before = count_rows()
        dry = caller.post(f"{POKE}?dryRun=true", BODY, **key)
        assert (dry.status_code, json.loads(dry.content)["code"]) == (409, "CONFLICT"), "the widget is there already"
        other = caller.post(f"{POKE}?dryRun=true", {**BODY, "widgetId": "w2"}, **key)
        assert (other.status_code, json.loads(other.content)) == (200, {"poked": "w2"})
        assert other["Dry-Run"] == "true"
        assert "Idempotency-Replayed" not in other
        again = caller.post(POKE, BODY, **key)
        assert (again.content, again["Idempotency-Replayed"]) == (real.content, "true")
        # What was refused is recorded.
        assert grown(before) == {"compute_audit_events": 1}

    def test_a_real_call_after_it_acts_under_the_same_key_with_any_input(self, caller: Caller) -> None:
        key = {"Idempotency-Key": "k1"}
        caller.post(f"{POKE}?dryRun=true", BODY, **key)
        before = count_rows()
        assert json.loads(caller.post(POKE, {**BODY, "widgetId": "w2"}, **key).content) == {"poked": "w2"}
        assert grown(before) == ONE_EFFECT

    def test_its_key_is_held_to_the_form_of_one(self, caller: Caller) -> None:
        assert caller.post(f"{POKE}?dryRun=true", BODY, **{"Idempotency-Key": "a b"}).status_code == 400

    def test_a_denied_one_is_recorded(self, caller: Caller) -> None:
        before = count_rows()
        caller.post(f"{POKE}?dryRun=true", {**BODY, "tenantId": "t2"})
        assert grown(before) == {"compute_audit_events": 1}

    @pytest.mark.parametrize("value", ["", "yes", "TRUE", "1", "true&dryRun=true"])
    def test_its_value_is_true_or_false(self, caller: Caller, value: str) -> None:
        assert caller.post(f"{POKE}?dryRun={value}", BODY).status_code == 400

    def test_it_can_be_asked_in_process(self) -> None:
        before = count_rows()
        job = Principal(id="job", kind="internal")
        assert compute.api.plugins.acme.widgets.poke(job, BODY, dry_run=True).poked == "w1"
        assert grown(before) == {}


@pytest.mark.django_db(transaction=True)
def test_the_cores_reconciler_purges_what_has_expired(caller: Caller) -> None:
    caller.post(POKE, BODY, **{"Idempotency-Key": "k1"})
    job = compute.jobs["core.idempotency-retention"]

    def kept_after_purge() -> int:
        with transaction.transaction():
            transaction.enqueue([WorkRow("core.idempotency-retention", "purge", -1)])
        job.tick()
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM compute_idempotency")
            return int(cursor.fetchone()[0])

    assert kept_after_purge() == 1
    advance_clock(timedelta(hours=24, seconds=1))
    assert kept_after_purge() == 0
