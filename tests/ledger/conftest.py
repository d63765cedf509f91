"""A throwaway host for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from tests.ledger.host import Host, create_database, drop_database


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host project with the core only, over an empty database."""
    default: dict[str, Any] = settings.DATABASES["default"]
    server = {key: default[key] for key in ("HOST", "PORT", "USER", "PASSWORD") if default.get(key)}
    name = f"compute_ledger_{uuid4().hex[:12]}"
    create_database(server, name)
    host = Host(tmp_path, name, server)
    host.configure()
    try:
        yield host
    finally:
        drop_database(server, name)
