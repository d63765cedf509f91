"""A throwaway host for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from tests.ledger.host import Host, create_database, drop_database, empty_database


@pytest.fixture(scope="session")
def throwaway_server() -> dict[str, Any]:
    """How the tests reach their server, as settings name it."""
    default: dict[str, Any] = settings.DATABASES["default"]
    return {key: default[key] for key in ("HOST", "PORT", "USER", "PASSWORD") if default.get(key)}


@pytest.fixture(scope="session")
def throwaway_database(throwaway_server: dict[str, Any]) -> Iterator[str]:
    """A database that the tests of this process use one after the other: dropping one costs a checkpoint."""
    name = f"compute_ledger_{uuid4().hex[:12]}"
    create_database(throwaway_server, name)
    try:
        yield name
    finally:
        drop_database(throwaway_server, name)


@pytest.fixture
def host(tmp_path: Path, throwaway_server: dict[str, Any], throwaway_database: str) -> Host:
    """A host project with the core only, over an empty database."""
    empty_database(throwaway_server, throwaway_database)
    host = Host(tmp_path, throwaway_database, dict(throwaway_server))
    host.configure()
    return host
