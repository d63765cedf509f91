"""Keyset pages and their signed cursors."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given, strategies as st

from better_compute import ComputeError, Page, PageInput
from better_compute.contract.methods import Input
from better_compute.envelope.cursors import LOOKED_AT, Cursors
from better_compute.store import clock, transaction
from better_compute.store.work import WorkRow
from better_compute.testing import advance_clock
from tests.envelope.conftest import Caller


def queue(*keys: str, kind: str = "acme.widgets") -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow(kind, key, -1) for key in keys])


def listed(caller: Caller, **members: Any) -> dict[str, Any]:
    response = caller.post("work/list", members)
    assert response.status_code == 200, response.content
    found: dict[str, Any] = json.loads(response.content)
    return found


@pytest.fixture
def lister(make_caller: Any) -> Caller:
    made: Caller = make_caller(None, "compute:work:read", name="lena")
    return made


@pytest.mark.django_db(transaction=True)
class TestOverHttp:
    def test_pages_follow_one_another_to_the_end(self, lister: Caller) -> None:
        queue(*[f"t{number}" for number in range(5)])
        found, cursor = [], ""
        for _ in range(3):
            page = listed(lister, limit=2, cursor=cursor)
            found += [each["key"] for each in page["items"]]
            cursor = page["nextCursor"]
        assert found == ["t0", "t1", "t2", "t3", "t4"]
        assert cursor is None

    def test_a_full_last_page_says_that_it_is_the_last(self, lister: Caller) -> None:
        queue("t0", "t1")
        assert listed(lister, limit=2)["nextCursor"] is None

    def test_rows_that_come_and_go_shift_nothing(self, lister: Caller) -> None:
        queue("b", "d", "f")
        page = listed(lister, limit=1)
        queue("a", "c")
        page = listed(lister, limit=2, cursor=page["nextCursor"])
        assert [each["key"] for each in page["items"]] == ["c", "d"]

    def test_get_takes_the_cursor_too(self, lister: Caller) -> None:
        queue("t0", "t1")
        cursor = listed(lister, limit=1)["nextCursor"]
        answer = lister.get(f"work/list?limit=1&cursor={cursor}")
        assert [each["key"] for each in json.loads(answer.content)["items"]] == ["t1"]

    def test_a_cursor_of_another_filter_is_refused(self, lister: Caller) -> None:
        queue("t0", "t1")
        cursor = listed(lister, limit=1)["nextCursor"]
        answer = lister.post("work/list", {"limit": 1, "cursor": cursor, "kind": "acme.widgets"})
        assert answer.status_code == 400
        assert json.loads(answer.content)["errors"][0]["pointer"] == "/cursor"

    def test_a_cursor_expires(self, lister: Caller) -> None:
        queue("t0", "t1")
        cursor = listed(lister, limit=1)["nextCursor"]
        advance_clock(timedelta(days=1, seconds=1))
        answer = lister.post("work/list", {"limit": 1, "cursor": cursor})
        assert (answer.status_code, json.loads(answer.content)["code"]) == (410, "CURSOR_EXPIRED")

    @pytest.mark.parametrize("cursor", ["a", "ä", "====", "AAAA", "A" * 2_000, "null", "../../etc", "%00"])
    def test_what_is_no_cursor_is_refused(self, lister: Caller, cursor: str) -> None:
        answer = lister.post("work/list", {"cursor": cursor})
        assert (answer.status_code, json.loads(answer.content)["errors"][0]["pointer"]) == (400, "/cursor")


class Filtered(PageInput):
    """A list with one filter."""

    name: str = ""


def read(rows: list[int]) -> Any:
    return lambda after, limit: [row for row in rows if after is None or row > after[0]][:limit]


@pytest.fixture
def cursors(db: None) -> Cursors:
    return Cursors("group.list", "t1", clock.now())


def walk(cursors: Cursors, rows: list[int], limit: int, show: Any = lambda row: row) -> list[Page[int]]:
    pages: list[Page[int]] = []
    cursor: str | None = ""
    while cursor is not None:
        pages.append(cursors.page(Filtered(cursor=cursor, limit=limit), read(rows), key=lambda row: (row,), show=show))
        cursor = pages[-1].next_cursor
    return pages


@pytest.mark.django_db
def test_a_cursor_opens_no_other_method_or_tenant(cursors: Cursors) -> None:
    cursor = cursors.make(Filtered(), (1,))
    for other in (Cursors("group.other", "t1", cursors.at), Cursors("group.list", "t2", cursors.at)):
        with pytest.raises(ComputeError, match="none of this list"):
            other.read(Filtered(cursor=cursor))


@pytest.mark.django_db
def test_every_changed_bit_is_refused(cursors: Cursors) -> None:
    raw = bytearray(base64.urlsafe_b64decode(cursors.make(Filtered(), (1,)) + "=="))
    for position in range(len(raw) * 8):
        changed = bytearray(raw)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(ComputeError):
            cursors.read(Filtered(cursor=base64.urlsafe_b64encode(bytes(changed)).decode()))


@pytest.mark.django_db
def test_a_cursor_outlives_the_change_of_the_secret_while_the_earlier_one_is_kept(cursors: Cursors) -> None:
    with override_settings(COMPUTE={"SECRET": ["a" * 32]}):
        cursor = cursors.make(Filtered(), (1,))
    with override_settings(COMPUTE={"SECRET": ["b" * 32, "a" * 32]}):
        assert cursors.read(Filtered(cursor=cursor)) == (1,)
    with override_settings(COMPUTE={"SECRET": ["b" * 32]}), pytest.raises(ComputeError):
        cursors.read(Filtered(cursor=cursor))


@pytest.mark.django_db
def test_a_page_that_shows_little_ends_after_a_bounded_number_of_rows(cursors: Cursors) -> None:
    pages = walk(cursors, list(range(2 * LOOKED_AT + 5)), 10, show=lambda row: None)
    assert [len(page.items) for page in pages] == [0, 0, 0]


@given(rows=st.sets(st.integers(0, 60)), limit=st.integers(1, 9), hidden=st.sets(st.integers(0, 60)))
def test_walking_shows_every_row_once_in_order(rows: set[int], limit: int, hidden: set[int]) -> None:
    from datetime import UTC, datetime

    cursors = Cursors("group.list", None, datetime.now(UTC))
    pages = walk(cursors, sorted(rows), limit, show=lambda row: None if row in hidden else row)
    assert [item for page in pages for item in page.items] == sorted(rows - hidden)
    assert all(len(page.items) == limit for page in pages[:-1])


def test_the_inputs_of_lists_refuse_unknown_fields() -> None:
    assert issubclass(PageInput, Input)
    assert PageInput.__struct_config__.forbid_unknown_fields
