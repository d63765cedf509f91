"""A database without a single table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql


@pytest.fixture
def fresh_database(owner_url: str) -> Iterator[Callable[[], str]]:
    """Create an empty database and return its address; it is dropped afterwards."""
    parts = urlsplit(owner_url)
    name = f"{parts.path.lstrip('/')}_fresh"

    def run(statement: str) -> None:
        with psycopg.connect(owner_url, autocommit=True) as session:
            session.execute(sql.SQL(statement).format(sql.Identifier(name)))

    def create() -> str:
        run("DROP DATABASE IF EXISTS {}")
        run("CREATE DATABASE {}")
        return urlunsplit(parts._replace(path=f"/{name}"))

    yield create
    run("DROP DATABASE IF EXISTS {}")
