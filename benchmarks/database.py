"""A database of the benchmark's own: created for a group, dropped after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql


def _with_name(url: str, name: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{name}"))


@contextmanager
def own_database(server_url: str, group: str) -> Iterator[str]:
    """Create ``bench_<group>_<pid>`` on the server of ``server_url``, yield its URL, and drop it.

    The role of the URL needs CREATEDB. Nothing else on the server is touched.
    """
    name = f"bench_{group}_{os.getpid()}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield _with_name(server_url, name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def server_version(url: str) -> str:
    """For the record: which PostgreSQL answered, and how it commits."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')"
        ).fetchone()
    assert row is not None
    return f"PostgreSQL {row[0]}, fsync={row[1]}, synchronous_commit={row[2]}"
