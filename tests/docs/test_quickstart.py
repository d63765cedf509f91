"""The quickstart's listing that differs from the tested file differs in the package's name only."""

from __future__ import annotations

from .snippets import DOCS


def test_the_listed_apps_py_is_the_tested_one_in_a_package_of_its_own() -> None:
    tested = (DOCS.parent / "example_project" / "acme_widgets" / "apps.py").read_text(encoding="utf-8")
    listed = tested.replace("example_project.acme_widgets", "acme_widgets")
    assert listed in (DOCS / "quickstart.md").read_text(encoding="utf-8")
