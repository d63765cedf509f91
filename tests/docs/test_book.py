"""The book's promises about itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .snippets import DOCS, pages

ROOT = DOCS.parent
#: Hosts of package indexes, and paths of a machine: a page that names one is right in one place only.
FOREIGN = re.compile(
    r"pypi\.|pythonhosted|npmjs|registry\.|devpi|artifactory|/home/|/root/|/work/|/Users/|127\.0\.0\.1|localhost:\d",
    re.IGNORECASE,
)


def name(page: Path) -> str:
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", pages(), ids=name)
def test_a_page_names_no_package_index_and_no_path_of_a_machine(page: Path) -> None:
    found = [line for line in page.read_text(encoding="utf-8").splitlines() if FOREIGN.search(line)]
    assert found == []


@pytest.mark.slow
def test_the_book_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


def test_every_decision_page_says_context_choice_figures_and_what_was_rejected() -> None:
    decisions = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [page.name[:4] for page in decisions] == [f"{number:04}" for number in range(1, len(decisions) + 1)]
    for page in decisions[1:]:
        headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert [each for each in headings if each in {"Context", "Choice", "Figures", "Rejected"}] == [
            "Context",
            "Choice",
            "Figures",
            "Rejected",
        ], page.name


def test_every_dependency_has_its_line_and_every_line_its_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [
        *project["dependencies"],
        *(each for group in project["optional-dependencies"].values() for each in group),
    ]
    declared = {re.split(r"[\[<>=~; ]", each)[0].lower() for each in required} - {"better-compute"}
    page = (DOCS / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE))
    assert listed == declared
