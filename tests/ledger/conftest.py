"""A throwaway host for each test: over a database that holds the core, or over an empty one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.ledger.databases import Databases
from tests.ledger.host import Host
from tests.warm import HOST, Warm


@pytest.fixture(scope="session")
def throwaway_server() -> dict[str, Any]:
    """How the tests reach their server, as settings name it."""
    default: dict[str, Any] = settings.DATABASES["default"]
    return {key: default[key] for key in ("HOST", "PORT", "USER", "PASSWORD") if default.get(key)}


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """The process that forks for each ``manage.py``."""
    server = Warm(tmp_path_factory.mktemp("warm") / "socket", HOST)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def databases(throwaway_server: dict[str, Any]) -> Iterator[Databases]:
    """Where each test gets its database."""
    databases = Databases(throwaway_server)
    try:
        yield databases
    finally:
        databases.close()


@pytest.fixture(scope="session")
def core_host(tmp_path_factory: pytest.TempPathFactory, databases: Databases, warm: Warm) -> Host:
    """A host with the core migrated from nothing; to be read and copied only."""
    host = Host(tmp_path_factory.mktemp("core"), databases.create(), dict(databases.server), warm)
    host.configure()
    host.manage("compute_migrate")
    return host


@pytest.fixture(scope="session")
def core_database(core_host: Host) -> str:
    """Its database."""
    return core_host.database


@pytest.fixture
def from_nothing() -> None:
    """Ask for this beside ``host`` when the test begins with an empty database."""


@pytest.fixture
def host(request: pytest.FixtureRequest, tmp_path: Path, databases: Databases, warm: Warm) -> Iterator[Host]:
    """A host project with the core only, already migrated unless the test asks for ``from_nothing``."""
    empty = "from_nothing" in request.fixturenames
    database = databases.create() if empty else databases.take(request.getfixturevalue("core_database"))
    try:
        host = Host(tmp_path, database, dict(databases.server), warm)
        host.configure()
        yield host
    finally:
        databases.drop(database)
