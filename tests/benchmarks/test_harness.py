"""The harness's own claims; no service is needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import harness, results_file, table
from benchmarks.bars import Bar
from benchmarks.harness import Contest, Figure, Group, Result


@pytest.fixture(autouse=True)
def _uncollected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed here, so nothing has to be collected before."""
    monkeypatch.setattr(harness.gc, "collect", lambda: 0)


def scripted(name: str, log: list[str], values: list[float]) -> Callable[[], float]:
    """A measure that says it ran and answers the next value."""
    remaining = iter(values)

    def measure() -> float:
        log.append(name)
        return next(remaining)

    return measure


def contest(ours: list[float], peer: list[float], log: list[str] | None = None, **options: int) -> Contest:
    log = [] if log is None else log
    return Contest("work", "ms", {"ours": scripted("ours", log, ours), "peer": scripted("peer", log, peer)}, **options)


def result(bar: str, value: float, peer_value: float) -> Result:
    fought = contest([value] * 6, [peer_value] * 6)
    return Figure("work: f", fought, "peer", bar).result(fought.run())


@pytest.mark.parametrize(
    ("text", "measured", "holds"),
    [
        ("<= 1.6 x", 1.6, True),
        ("<= 1.6 x", 1.61, False),
        (">= 0.7 x", 0.7, True),
        (">= 0.7 x", 0.69, False),
        (">= 30,000 keys/s", 29_999, False),
        (">= 30,000 keys/s", 30_000, True),
        ("<= 15 ms", 15.0, True),
    ],
)
def test_a_bar_holds_on_its_own_side_of_the_limit(text: str, measured: float, holds: bool) -> None:
    assert Bar.parse(text).holds(measured) is holds


@pytest.mark.parametrize("text", ["1.6 x", "< 1.6 x", "<= x", "<= 1.6", "<= 1.6  x", "about <= 1.6 x"])
def test_a_bar_that_is_not_in_the_stated_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no bar"):
        Bar.parse(text)


def test_a_figure_that_is_only_stated_is_judged_by_nothing() -> None:
    measured = result("stated", 9, 3)
    assert (measured.ratio, measured.holds, measured.bar) == (3, True, "stated")
    assert table.rows([measured])[0][-2:] == ["stated", ""]


def test_rounds_interleave_the_contestants_and_turn_their_order() -> None:
    log: list[str] = []
    contest([1.0] * 5, [1.0] * 5, log, warm_up=0).run()
    assert log == ["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours", "ours", "peer"]


def test_warm_up_rounds_are_run_and_not_counted() -> None:
    samples = contest([100.0, 1, 1, 1, 1, 1], [100.0, 2, 2, 2, 2, 2], warm_up=1).run()
    assert list(samples.values["ours"]) == [1, 1, 1, 1, 1]


def test_a_contest_whose_time_is_over_ends_with_the_fewest_rounds_that_count() -> None:
    samples = contest([1.0] * 9, [1.0] * 9, warm_up=0, rounds=9).run(until=0.0)
    assert {name: len(values) for name, values in samples.values.items()} == {"ours": 5, "peer": 5}


def test_a_contest_that_takes_long_leaves_the_next_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(harness, "monotonic", lambda: clock[0])

    def slow() -> float:
        clock[0] += 1
        return 1.0

    first = Contest("first", "ms", {"ours": slow}, rounds=3_600, warm_up=0)
    second = contest([1.0] * 9, [1.0] * 9, warm_up=0, rounds=9)
    figures = [Figure("work: first", first, None, "<= 1 ms"), Figure("work: second", second, "peer", "<= 1 x")]
    run = Group(figures).run(until=100.0)
    assert len(run.samples[0].values["ours"]) == 50
    assert len(run.samples[1].values["ours"]) == 9
    assert not run.failed


def test_fewer_than_five_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="has 4 rounds; at least 5 are needed"):
        contest([], [], rounds=4)


def test_a_contest_without_ours_is_refused() -> None:
    with pytest.raises(ValueError, match="has no contestant named 'ours'"):
        Contest("work", "ms", {"peer": lambda: 1.0})


def test_a_figure_compares_medians_and_keeps_the_spread_of_the_rounds() -> None:
    fought = contest([3, 1, 2, 2, 9], [1, 1, 1, 1, 1], warm_up=0)
    measured = Figure("work: f", fought, "peer", "<= 2 x").result(fought.run())
    assert (measured.value, measured.peer_value, measured.ratio, measured.spread) == (2, 1, 2, (1, 9))


@pytest.mark.parametrize(
    ("bar", "ours", "peer", "holds"),
    [
        ("<= 1.5 x", 3.0, 2.0, True),
        ("<= 1.5 x", 3.1, 2.0, False),
        (">= 0.7 x", 70.0, 100.0, True),
        (">= 0.7 x", 69.0, 100.0, False),
        ("<= 10 ms", 9.0, 1.0, True),
    ],
)
def test_holds_judges_the_ratio_or_the_value_as_the_bar_says(bar: str, ours: float, peer: float, holds: bool) -> None:
    assert result(bar, ours, peer).holds is holds


def test_a_bar_on_a_ratio_needs_a_peer() -> None:
    with pytest.raises(ValueError, match="has a bar on a ratio and no peer"):
        Figure("work: f", contest([], []), None, "<= 1.5 x")


def test_a_figure_cannot_compare_what_its_contest_does_not_run() -> None:
    with pytest.raises(ValueError, match="compares 'celery', which its contest does not run"):
        Figure("work: f", contest([], []), "celery", "<= 1.5 x")


def test_a_contest_that_raises_takes_only_its_own_figures_with_it() -> None:
    def broken() -> float:
        raise RuntimeError("no server")

    bad = Contest("bad", "ms", {"ours": broken, "peer": lambda: 1.0})
    good = contest([1.0] * 6, [1.0] * 6)
    run = Group([Figure("work: bad", bad, "peer", "<= 1 x"), Figure("work: good", good, "peer", "<= 1 x")]).run()
    assert [measured.name for measured in run.results] == ["work: good"]
    assert run.failed == {"work: bad": "RuntimeError: no server"}


def test_an_entry_has_the_fields_the_issue_names() -> None:
    assert result("<= 2 x", 2.0, 1.0).entry() == {
        "name": "work: f",
        "value": 2.0,
        "unit": "ms",
        "peer": "peer",
        "peer_value": 1.0,
        "ratio": 2.0,
        "bar": "<= 2 x",
        "holds": True,
    }


def test_a_missing_figure_is_named() -> None:
    assert results_file.missing(["work: f", "work: g"], [result("<= 2 x", 2.0, 1.0)]) == ["work: g"]


def test_merging_keeps_the_other_groups_and_drops_a_stale_figure_of_this_one() -> None:
    kept = [{"name": "call: query", "value": 1}, {"name": "work: gone", "value": 1}]
    merged = results_file.merge(kept, ["work"], [result("<= 2 x", 2.0, 1.0)])
    assert [entry["name"] for entry in merged] == ["call: query", "work: f"]


def test_the_table_says_missed_for_a_bar_that_does_not_hold() -> None:
    printed = table.render([result("<= 2 x", 2.0, 1.0), result("<= 1 x", 2.0, 1.0)], {"work: g": "RuntimeError: no"})
    lines = printed.splitlines()
    assert lines[2].endswith("holds")
    assert lines[3].endswith("MISSED")
    assert lines[-1] == "FAILED  work: g: RuntimeError: no"
