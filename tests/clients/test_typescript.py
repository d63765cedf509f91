"""The generated TypeScript client compiles strictly, and calls every method from Node."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import Running, cases, still, with_typescript

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_every_method_answers_as_over_plain_http(running: Running, built: Path) -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", f"t{number}", -1) for number in range(7)])
    asked = cases()
    (built / "cases.json").write_text(json.dumps([dataclasses.asdict(case) for case in asked]), encoding="utf-8")
    command = ["node", "calls.mjs", running.url, running.token, "cases.json"]
    expected = [running.outcome(case) for case in asked]
    ran = subprocess.run(command, cwd=built, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    answered = json.loads(ran.stdout)
    for case, mine, theirs in zip(asked, answered["outcomes"], expected, strict=True):
        assert still(mine) == still(theirs), case
    assert answered["walked"] == [f"t{number}" for number in range(7)]
    assert answered["poked"] == ["ts", "ts"]


def test_the_address_that_the_api_is_read_at_is_good_too(running: Running, built: Path) -> None:
    asked = [{"method": "system.version", "input": {}, "options": {}}]
    (told,) = with_typescript(built, f"{running.url}/api/compute/", running.token, asked)
    assert "core" in told["answer"]
