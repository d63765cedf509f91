"""The Spin model of the queue and the fence (docs/models/work.pml): it holds, and it tells when a rule is left out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from better_compute.engine.membership import Membership
from better_compute.store import claims, ends, fence, leases, members, transaction

pytestmark = [pytest.mark.needs("spin"), pytest.mark.needs("gcc"), pytest.mark.slow]

MODEL = Path(__file__).resolve().parents[2] / "docs" / "models" / "work.pml"
MEGABYTES = 1_024
DEPTH = 100_000
SECONDS = 300

LOST = "assertion violated  !(((seen<want)&& !(queued)))"
LOSER = "assertion violated ((holder==me)&&(epoch==my_epoch))"


def verify(room: Path, *rules: str) -> str:
    """What the exhaustive search says, in bounded memory."""
    options = [f"-D{rule}" for rule in rules]
    subprocess.run(["spin", "-a", *options, str(MODEL)], cwd=room, check=True, capture_output=True)
    limits = [f"-DMEMLIM={MEGABYTES}", "-DSAFETY", "-DCOLLAPSE"]
    subprocess.run(["gcc", "-O2", "-w", *limits, "-o", "pan", "pan.c"], cwd=room, check=True)
    searched = subprocess.run(
        ["./pan", f"-m{DEPTH}"], cwd=room, check=True, capture_output=True, text=True, timeout=SECONDS
    )
    return searched.stdout


def test_no_order_of_steps_loses_a_wake_up_overlaps_or_lets_a_loser_commit(tmp_path: Path) -> None:
    answer = verify(tmp_path)
    assert "errors: 0" in answer
    # Everything was searched: neither the memory nor the depth cut it short.
    assert "search not completed" not in answer.lower()
    assert "max search depth too small" not in answer
    states = re.search(r"(\d+) states, stored", answer)
    assert states is not None
    assert int(states[1]) > 100_000
    unreached = re.findall(r"proctype (\w+)\n((?:\t.*\n)*)", answer)
    for name, lines in unreached:
        assert lines.strip().endswith(")"), name
        assert "(0 of " in lines, f"{name} never reaches:\n{lines}"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("NO_GENERATION", LOST),
        ("NO_INCARNATION", LOST),
        ("NO_LOCK", LOSER),
        ("NO_UNIQUE", LOSER),
        ("NO_FENCE", LOSER),
        ("NO_FINISH_FENCE", LOSER),
    ],
)
def test_a_rule_left_out_is_found(tmp_path: Path, rule: str, found: str) -> None:
    answer = verify(tmp_path, rule)
    assert "errors: 1" in answer
    assert found in answer


def test_overlap_is_found_when_losers_may_commit(tmp_path: Path) -> None:
    """Without the lock the first harm is a loser's commit; this looks past it for the overlap itself."""
    answer = verify(tmp_path, "NO_LOCK", "LOSERS_MAY_COMMIT")
    assert "assertion violated (inside<=1)" in answer


def test_the_steps_bear_the_names_of_the_code() -> None:
    steps = set(re.findall(r"^inline (\w+)\(", MODEL.read_text(), re.MULTILINE))
    store = {"bury", "acquire", "release", "claim", "require", "finish_done", "enqueue", "join"}
    assert steps - {"commit", "rollback"} == store
    places = (claims, ends, fence, leases, members, transaction, Membership)
    assert not [step for step in store if not any(hasattr(place, step) for place in places)]
