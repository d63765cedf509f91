"""Every list answers pages with signed cursors, none with an id that a caller could make up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_origin

import msgspec
import pytest

from better_compute import ErrorCode, Page, PageInput, Principal, compute
from better_compute.contract.methods import MethodSpec
from tests.modules.iam.conftest import OPERATOR, grant, refused, rows, service, tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


def lists() -> list[MethodSpec]:
    """The methods that list, by name or by what they take."""
    return [
        spec
        for spec in compute.registry.methods.values()
        if spec.dotted.endswith(".list") or spec.dotted == "iam.whoCan" or issubclass(spec.input_type, PageInput)
    ]


def walk(method: Any, by: Principal, **ask: Any) -> Iterator[list[Any]]:
    """The items of one page after the other; a list of so few rows ends soon."""
    cursor: dict[str, str] = {}
    for _ in range(50):
        page = method(by, {**ask, **cursor})
        yield page.items
        if page.next_cursor is None:
            return
        cursor = {"cursor": page.next_cursor}
    raise AssertionError("The list does not end.")


def test_every_list_takes_a_cursor_and_answers_a_page() -> None:
    wrong = [
        spec.dotted
        for spec in lists()
        if not issubclass(spec.input_type, PageInput) or get_origin(spec.output_type) is not Page
    ]
    assert wrong == []
    assert len(lists()) >= 9


def test_no_method_of_these_modules_takes_an_id_to_begin_after() -> None:
    for spec in compute.registry.methods.values():
        assert not {"after", "next"} & {field.encode_name for field in msgspec.structs.fields(spec.input_type)}, spec


class TestWalking:
    """Two items a page, as many pages as that takes, and no empty one after an exactly full last page."""

    @pytest.fixture
    def eve(self, world: None) -> Principal:
        eve = service("eve", home="own")
        grant("eve", "org", "owner", inherit=True)
        return eve

    def sizes(self, method: Any, by: Principal, **ask: Any) -> tuple[list[int], list[Any]]:
        pages = list(walk(method, by, limit=2, **ask))
        return [len(page) for page in pages], [item for page in pages for item in page]

    def test_tenants_below(self, eve: Principal) -> None:
        for number in range(2):
            tenant(f"p{number}", "org")
        sizes, found = self.sizes(compute.api.tenant_tree.list, eve, tenantId="org")
        assert (sizes, [each.id for each in found]) == ([2, 2], ["own", "p0", "p1", "sib"])

    def test_those_that_the_caller_may_not_see_take_no_place(self, eve: Principal) -> None:
        for number in range(4):
            tenant(f"p{number}", "org")
        bob = service("bob")
        for place in ("org", "p1", "sib"):
            grant("bob", place, "viewer")
        sizes, found = self.sizes(compute.api.tenant_tree.list, bob, tenantId="org")
        assert (sizes, [each.id for each in found]) == ([2], ["p1", "sib"])

    def test_grants_tokens_and_the_break_glass_log(self, eve: Principal) -> None:
        for number in range(3):
            service(f"s{number}")
            grant(f"s{number}", "own", actions=["compute:iam:break-glass"])
            compute.api.tokens.create(eve, {"tenantId": "own", "label": f"t{number}"})
            caller = Principal(id=f"service/s{number}", kind="internal", acts_for=f"service/s{number}")
            compute.api.break_glass.activate(caller, {"tenantId": "own", "reason": "fire"})
        for method, count in (
            (compute.api.grants.list, 6),
            (compute.api.tokens.list, 3),
            (compute.api.break_glass.list, 3),
        ):
            sizes, found = self.sizes(method, eve, tenantId="own")
            assert sizes == [2] * (count // 2) + [1] * (count % 2)
            ids = [each.id for each in found]
            assert ids == sorted(set(ids))

    def test_service_accounts_and_people(self, eve: Principal) -> None:
        for number in range(3):
            service(f"s{number}", home="own")
            compute.api.principals.disable(OPERATOR, {"principal": f"external/corp/p{number}", "reason": "left"})
        sizes, found = self.sizes(compute.api.service_accounts.list, eve, tenantId="own")
        assert (sizes, found[0].principal) == ([2, 2], "service/eve")
        sizes, found = self.sizes(compute.api.principals.list, OPERATOR)
        assert (sizes, [each.principal for each in found]) == ([2, 1], [f"external/corp/p{n}" for n in range(3)])

    def test_roles_built_in_ones_first_and_then_ones_own_and_those_above(self, eve: Principal) -> None:
        for place, name in (("own", "b"), ("own", "a"), ("org", "z"), ("sib", "other")):
            compute.api.roles.create(OPERATOR, {"tenantId": place, "name": name, "permits": ["compute:acme:read"]})
        sizes, found = self.sizes(compute.api.roles.list, eve, tenantId="own")
        assert sizes == [2, 2, 2]
        assert [each.id for each in found] == ["operator", "owner", "viewer", "org/z", "own/a", "own/b"]

    def test_who_can(self, eve: Principal) -> None:
        for number in range(5):
            service(f"s{number}")
            grant(f"s{number}", "own", "viewer" if number % 2 else "operator")
        ask = {"tenantId": "own", "action": "compute:acme:poke"}
        sizes, found = self.sizes(compute.api.iam.who_can, eve, **ask)
        assert (sizes, [each.principal for each in found]) == (
            [2, 2],
            ["service/eve", "service/s0", "service/s2", "service/s4"],
        )

    def test_a_cursor_is_of_one_list_and_cannot_be_made_up(self, eve: Principal) -> None:
        for number in range(3):
            grant("eve", "own", actions=["compute:acme:read"], reason=str(number))
            compute.api.tokens.create(eve, {"tenantId": "own", "label": "t"})
        cursor = compute.api.grants.list(eve, {"tenantId": "own", "limit": 1}).next_cursor
        for method, ask in (
            (compute.api.tokens.list, {"tenantId": "own", "cursor": cursor}),
            (compute.api.grants.list, {"tenantId": "sib", "cursor": cursor}),
            (compute.api.grants.list, {"tenantId": "own", "role": "owner", "cursor": cursor}),
            (compute.api.grants.list, {"tenantId": "own", "cursor": cursor[:-2] + "AA"}),
            (compute.api.grants.list, {"tenantId": "own", "cursor": str(rows("SELECT gen_random_uuid()")[0][0])}),
        ):
            error = refused(lambda method=method, ask=ask: method(eve, ask))
            assert error.code is ErrorCode.INVALID_INPUT
