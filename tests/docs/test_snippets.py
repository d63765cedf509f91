"""What the book shows is run as it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth import get_user_model

from better_compute import testing
from better_compute.testing.member import SimulatedMember

from .snippets import DOCS, pages, snippets

RUN = [page for page in pages() if snippets(page)]


def of(language: str) -> list[Path]:
    return [page for page in RUN if any(each.language == language for each in snippets(page))]


def name(page: Path) -> str:
    return str(page.relative_to(DOCS))


@pytest.fixture
def clock_put_back() -> Iterator[None]:
    yield
    testing.reset_clock()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", of("python"), ids=name)
def test_the_python_of_a_page_runs_as_it_stands(
    page: Path, clock_put_back: None, simulated_member: Callable[..., SimulatedMember]
) -> None:
    given: dict[str, Any] = {
        "superuser": get_user_model().objects.create_superuser("ops", password="secret"),
        "simulated_member": simulated_member,
    }
    for snippet in snippets(page):
        if snippet.language == "python":
            # Line numbers of a failure are those of the page.
            source = "\n" * (snippet.line - 1) + snippet.code
            exec(compile(source, str(page), "exec"), given)  # noqa: S102 - the book's own code
    for name, test in list(given.items()):
        if name.startswith("test_"):
            test(**{parameter: given[parameter] for parameter in signature(test).parameters})


@pytest.mark.django_db
@pytest.mark.parametrize("page", of("sql"), ids=name)
def test_the_sql_of_a_page_runs_as_it_stands(page: Path, owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        for snippet in snippets(page):
            if snippet.language == "sql":
                connection.execute(snippet.code)
        connection.rollback()


def test_the_book_has_runnable_pages() -> None:
    assert {"quickstart.md", "concepts/clock.md"} <= {name(page) for page in RUN}
