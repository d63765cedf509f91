"""What the page about clients shows is run as it stands, against a running server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from better_compute import Principal, compute
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import Running

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-a-client.md"

pytestmark = pytest.mark.django_db(transaction=True)


def shown(language: str) -> list[str]:
    """The blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def queued(running: Running) -> Running:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", "t1", -1)])
    return running


def test_the_python_of_the_page_runs(
    queued: Running, generated: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "compute_client", generated)
    blocks = shown("python")
    assert len(blocks) == 2
    given: dict[str, Any] = {"token": queued.token}
    for block in blocks:
        exec(compile(block.replace("https://example.com", queued.url), str(PAGE), "exec"), given)  # noqa: S102
    told = capsys.readouterr().out
    assert "Counted(count=1)" in told
    assert "added acme.widgets/t1 QueuedKey(" in told


@pytest.mark.slow
def test_the_typescript_of_the_page_runs(queued: Running, built: Path) -> None:
    operator = Principal(id="internal/test", kind="internal")
    compute.api.plugins.acme.widgets.poke(operator, {"tenantId": "t1", "widgetId": "w1"})
    (block,) = shown("typescript")
    head = 'import { ApiError, Client } from "./build/client.js";\nconst token = process.argv[2];\n'
    (built / "page.mjs").write_text(head + block.replace("https://example.com", queued.url), encoding="utf-8")
    command = ["node", "page.mjs", queued.token]
    ran = subprocess.run(command, cwd=built, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("CONFLICT: ")
    assert "added acme.widgets/t1" in ran.stdout
