"""People who are disabled: refused at the next request, however they come, and let in again by who holds as much."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from better_compute import ComputeError, ErrorCode, Principal, compute
from better_compute.envelope import tokens as core_tokens
from tests.modules.iam.conftest import OPERATOR, grant, refused, revoke, rows, service
from tests.modules.tenancy.conftest import in_thread, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

COUNT = "/api/compute/plugins/acme/widgets/count"


@pytest.fixture
def mary(world: None) -> Any:
    """A user who may read own."""
    user = get_user_model().objects.create_user("mary", password="secret")
    grant(f"user/{user.pk}", "own", "viewer")
    return user


@pytest.fixture
def admin(world: None) -> Principal:
    """An owner of the root and all below."""
    admin = service("admin", home="root")
    grant("admin", "root", "owner", inherit=True)
    return admin


def disable(principal: str, by: Principal = OPERATOR) -> Any:
    return compute.api.principals.disable(by, {"principal": principal, "reason": "left"})


def enable(principal: str, by: Principal = OPERATOR) -> Any:
    return compute.api.principals.enable(by, {"principal": principal})


def status(client: Client, secret: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    return client.get(COUNT, {"tenantId": "own"}, headers=headers).status_code


class TestDisabled:
    def test_a_session_is_refused_at_its_next_request(self, mary: Any, client: Client) -> None:
        client.force_login(mary)
        assert status(client) == 200
        disable(f"user/{mary.pk}")
        assert status(client) == 404
        enable(f"user/{mary.pk}")
        assert status(client) == 200

    def test_a_scoped_token_is_refused_at_its_next_request(self, mary: Any, client: Client) -> None:
        me = Principal(id=f"user/{mary.pk}", kind="session", user=mary)
        more = grant(f"user/{mary.pk}", "own", "operator")
        secret = compute.api.tokens.create(me, {"tenantId": "own", "label": "t"}).secret
        revoke(more.id)
        assert status(client, secret) == 200
        disable(f"user/{mary.pk}")
        assert status(client, secret) == 401

    def test_a_token_of_the_core_is_refused_at_its_next_request(self, mary: Any, client: Client) -> None:
        secret, _ = core_tokens.create(user=mary, label="t", tenant_id="own")
        assert status(client, secret) == 200
        disable(f"user/{mary.pk}")
        assert status(client, secret) == 404

    def test_it_is_told_with_its_reason_to_the_root_once(self, mary: Any) -> None:
        shown = disable(f"user/{mary.pk}")
        assert (shown.disabled, shown.kind) == (True, "user")
        again = disable(f"user/{mary.pk}")
        assert again.disabled_at == shown.disabled_at
        (event,) = told("iam.principal-disabled")
        assert event["tenant"] == "root"
        assert event["data"] == {"principal": f"user/{mary.pk}", "reason": "left"}

    def test_somebody_of_a_provider_is_disabled_before_ever_coming(self) -> None:
        assert disable("external/corp/eve").disabled
        # A long subject is told of too.
        assert disable(f"external/corp/{'x' * 200}").disabled

    @pytest.mark.parametrize("principal", ["user/999999", "external/corp/nobody"])
    def test_enabling_who_is_not_there_is_refused(self, principal: str) -> None:
        assert refused(lambda: enable(principal)).code is ErrorCode.NOT_FOUND

    @pytest.mark.parametrize("principal", ["service/bob", "user/", "nobody", "external/corp/a b", "user/1\n"])
    def test_what_is_no_person_is_bad_input(self, principal: str) -> None:
        assert refused(lambda: disable(principal)).code is ErrorCode.INVALID_INPUT

    def test_a_user_who_is_not_there_is_not_found(self) -> None:
        assert refused(lambda: disable("user/999999")).code is ErrorCode.NOT_FOUND
        assert rows("SELECT count(*) FROM compute_iam_principals") == [(0,)]


class TestWho:
    def test_it_takes_an_owner_of_the_root(self, mary: Any, admin: Principal) -> None:
        owner = service("owner")
        grant("owner", "org", "owner", inherit=True)
        for call in (disable, enable):
            assert refused(lambda call=call: call(f"user/{mary.pk}", owner)).code is ErrorCode.ACCESS_DENIED
        for read in (
            lambda: compute.api.principals.get(owner, {"principal": f"user/{mary.pk}"}),
            lambda: compute.api.principals.list(owner, {}),
        ):
            assert refused(read).code is ErrorCode.ACCESS_DENIED
        assert disable(f"user/{mary.pk}", admin).disabled

    def test_enabling_takes_what_the_person_gets_back(self, mary: Any) -> None:
        clerk = service("clerk", home="root")
        grant("clerk", "root", actions=["compute:iam:manage", "compute:iam:read"])
        disable(f"user/{mary.pk}", clerk)
        error = refused(lambda: enable(f"user/{mary.pk}", clerk))
        assert (error.code, error.reason) == (ErrorCode.ACCESS_DENIED, "EXCEEDS_GIVER")
        assert compute.api.principals.get(clerk, {"principal": f"user/{mary.pk}"}).disabled


class TestLastOwner:
    def test_the_last_owner_cannot_be_disabled_nor_disable_itself(self, mary: Any) -> None:
        grant(f"user/{mary.pk}", "root", "owner", inherit=True)
        me = Principal(id=f"user/{mary.pk}", kind="session", user=mary)
        for by in (OPERATOR, me):
            error = refused(lambda by=by: disable(f"user/{mary.pk}", by))
            assert (error.code, error.reason) == (ErrorCode.IN_USE, "LAST_OWNER")
        assert rows("SELECT count(*) FROM compute_iam_principals WHERE disabled_at IS NOT NULL") == [(0,)]

    def test_two_owners_that_disable_each_other_at_once_leave_one(self) -> None:
        users = [get_user_model().objects.create_user(name) for name in ("ann", "ben")]
        people = [Principal(id=f"user/{user.pk}", kind="session", user=user) for user in users]
        for person in people:
            grant(person.id, "root", "owner", inherit=True)
        start = threading.Barrier(2)

        def attack(by: Principal, whom: Principal) -> Any:
            start.wait(10)
            return disable(whom.id, by)

        threads = [
            in_thread(lambda: attack(people[0], people[1])),
            in_thread(lambda: attack(people[1], people[0])),
        ]
        for thread, _ in threads:
            thread.join(20)
        answers = [answers[0] for _, answers in threads]
        assert sum(isinstance(answer, ComputeError) for answer in answers) == 1, answers
        assert rows("SELECT count(*) FROM compute_iam_principals WHERE disabled_at IS NULL") == [(1,)]


def test_pages_of_people_follow_each_other_and_can_be_of_one_kind(mary: Any) -> None:
    for number in range(4):
        disable(f"external/corp/p{number}")
        if number != 2:
            compute.api.principals.enable(OPERATOR, {"principal": f"external/corp/p{number}"})
    seen, after = [], None
    while True:
        page = compute.api.principals.list(OPERATOR, {"limit": 2, **({"cursor": after} if after else {})})
        seen += [each.principal for each in page.items]
        if (after := page.next_cursor) is None:
            break
    assert seen == [*(f"external/corp/p{number}" for number in range(4)), f"user/{mary.pk}"]
    ask = {"kind": "external", "disabled": True}
    assert [each.principal for each in compute.api.principals.list(OPERATOR, ask).items] == ["external/corp/p2"]
