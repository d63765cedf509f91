"""A wheel of this checkout, and a database for the project that tries it."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from .processes import run

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once."""
    place = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, REPOSITORY, cwd=place)
    (built,) = place.glob("better_compute-*.whl")
    return built


@pytest.fixture
def database() -> Iterator[dict[str, str]]:
    """A database of its own on the tests' server, made by and for the owner role."""
    address = os.environ["DATABASE_URL"]
    name = f"smoke_{secrets.token_hex(4)}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    parts = urlsplit(urlunsplit(urlsplit(address)._replace(path=f"/{name}")))
    yield {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
    }
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
