"""The picture of the queues over time: its scale, its gaps, and that it stays one picture for 40 kinds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.test.utils import CaptureQueriesContext

from better_compute.admin import charts
from better_compute.store.history import CAP, Depth, History
from tests.admin import rows

NOON = datetime(2030, 1, 2, 12, tzinfo=UTC)
PAGE = "/admin/compute/workitem/history/"


def history(*slots: dict[str, int] | None) -> History:
    newest = max((at for at, slot in enumerate(slots) if slot is not None), default=0)
    depths = [
        None if slot is None else {kind: Depth(due=due, newest=due * (at == newest)) for kind, due in slot.items()}
        for at, slot in enumerate(slots)
    ]
    return History(NOON, timedelta(hours=1), depths)


@pytest.mark.parametrize(("most", "top"), [(0, 4), (4, 4), (5, 8), (9, 20), (21, 40), (81, 200), (200_001, 400_000)])
def test_the_scale_ends_at_a_round_number_that_its_ticks_divide(most: int, top: int) -> None:
    assert charts.nice(most) == top


def test_bands_stand_on_each_other_the_highest_peak_first() -> None:
    chart = charts.stacked(history({"a": 1, "b": 3}, {"a": 2}))

    assert [(band.kind, band.peak, band.last) for band in chart.bands] == [("b", 3, 0), ("a", 2, 2)]
    assert chart.y_labels == ["4", "3", "2", "1", "0"]
    assert chart.bands[0].areas == ["M0 25 L10 25 L10 100 L20 100 L20 100 L10 100 L10 100 L0 100 Z"]
    assert chart.bands[1].areas == ["M0 0 L10 0 L10 50 L20 50 L20 100 L10 100 L10 25 L0 25 Z"]


def test_a_slot_that_was_not_sampled_is_a_gap_and_no_zero() -> None:
    chart = charts.stacked(history({"a": 4}, None, {"a": 4}, None))

    # The newest slot's sample is still to come.
    assert chart.gaps == [10]
    assert len(chart.bands[0].areas) == 2
    assert chart.bands[0].last == 4
    assert [column.text for column in chart.columns] == [
        "08:00: a 4",
        "09:00: not sampled",
        "10:00: a 4",
        "11:00: not sampled",
    ]


def test_more_kinds_than_colours_are_drawn_together() -> None:
    chart = charts.stacked(history({f"kind-{number:02}": number + 1 for number in range(40)}))

    assert [band.kind for band in chart.bands] == [*(f"kind-{number}" for number in range(39, 32, -1)), "33 others"]
    assert chart.bands[-1].peak == sum(range(1, 34))
    assert len({band.css for band in chart.bands}) == 8


def test_times_of_another_day_say_so() -> None:
    chart = charts.stacked(history(*[{"a": 1}] * 24))

    assert chart.x_labels == ["Tue 12:00", "Tue 18:00", "00:00", "06:00", "now"]


def test_a_count_that_was_cut_says_so() -> None:
    assert charts.small(history({"a": CAP + 1}))[0].peak == "50,000+"


@pytest.mark.django_db
class TestPage:
    def test_nothing_sampled_says_what_samples(self, admin_client: Client) -> None:
        page = admin_client.get(PAGE).content.decode()

        assert "A worker with the role controllers takes a sample every minute." in page

    @pytest.mark.parametrize("span", ["1h", "6h", "24h", "48h", "nonsense", ""])
    def test_every_span_has_its_page(self, admin_client: Client, span: str) -> None:
        rows.history(["a", "b"])

        page = admin_client.get(PAGE, {"span": span}).content.decode()

        assert page.count('class="compute-small"') == 2

    def test_it_reads_as_many_statements_for_40_kinds_as_for_none(self, admin_client: Client) -> None:
        from django.db import connection

        admin_client.get(PAGE)
        with CaptureQueriesContext(connection) as empty:
            admin_client.get(PAGE)
        rows.history([f"kind-{number}" for number in range(40)])
        with CaptureQueriesContext(connection) as full:
            page = admin_client.get(PAGE).content.decode()

        assert len(full) == len(empty)
        assert page.count('class="compute-small"') == 40

    def test_it_holds_no_inline_style_or_script(self, admin_client: Client) -> None:
        rows.history(["a"])

        page = admin_client.get(PAGE).content.decode()

        assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\S|\sstyle=|\son\w+=", page)

    def test_it_needs_to_view_the_queue(self, viewer_client: Client) -> None:
        from django.contrib.auth import get_user_model

        assert viewer_client.get(PAGE).status_code == 200
        get_user_model().objects.get(username="viewer").user_permissions.clear()
        assert viewer_client.get(PAGE).status_code == 403
