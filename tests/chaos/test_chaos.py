"""The harness itself: short runs of it, and that it tells when a rule is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.chaos.breaks import RULES, SCHEMA
from tests.chaos.trouble import EVERY, plan
from tests.chaos.workers import ROOT

SEED = 7


def hold(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the harness as ``make chaos`` does, on servers of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE", "CELERY", "DJANGO"))}
    return subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--quiet", "--seed", str(SEED), *options],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        timeout=400,
    )


def test_the_schedule_follows_from_the_seed_and_holds_every_mishap() -> None:
    for seconds in (12, 30, 60):
        mishaps = plan(SEED, seconds, 4, 3.0)
        assert mishaps == plan(SEED, seconds, 4, 3.0)
        assert mishaps != plan(SEED + 1, seconds, 4, 3.0)
        assert {mishap.what for mishap in mishaps} == set(EVERY)
        assert [mishap.at for mishap in mishaps] == sorted(mishap.at for mishap in mishaps)


def test_every_rule_that_can_be_left_out_is_there_to_be_left_out() -> None:
    before = subprocess.run(
        [sys.executable, "-c", "from tests.chaos.breaks import *\nfor rule in RULES: leave_out(rule)"],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.chaos.settings"},
        capture_output=True,
        text=True,
    )
    assert before.returncode == 0, before.stderr
    assert set(SCHEMA) <= set(RULES)


@pytest.mark.slow
def test_the_harness_finds_the_generation_left_out() -> None:
    """The rules that take a rarer coincidence are left out in the simulation, which finds each of them every time."""
    answer = hold("--seconds", "12", "--break", "generation")
    counted = re.search(r"\blost=(\d+)", answer.stdout)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert counted is not None, answer.stdout + answer.stderr
    assert int(counted[1]) > 0, answer.stdout
