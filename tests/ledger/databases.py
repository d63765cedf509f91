"""Throwaway databases, made ahead and dropped behind the tests' back: both wait for the server's disk."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from tests.ledger.host import connect

#: What a new database is like when nothing else is asked for.
EMPTY = "template1"


class Databases:
    """Copies of a template, each for one test."""

    def __init__(self, server: dict[str, Any]) -> None:
        self.server = server
        self._thread = ThreadPoolExecutor(1)
        self._ahead: dict[str, Future[str]] = {}
        self._names: set[str] = set()

    def create(self, template: str = EMPTY) -> str:
        """Create a database like ``template`` and return its name."""
        name = f"compute_ledger_{uuid4().hex[:12]}"
        self._names.add(name)
        with connect(self.server, "postgres") as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
        return name

    def take(self, template: str) -> str:
        """A database like ``template``; the next one is begun at once."""
        ahead = self._ahead.pop(template, None)
        name = ahead.result() if ahead else self.create(template)
        self._ahead[template] = self._thread.submit(self.create, template)
        return name

    def drop(self, name: str) -> None:
        """Drop a database soon, with whoever is still connected to it."""
        self._thread.submit(self._drop, name)

    def _drop(self, name: str) -> None:
        with connect(self.server, "postgres") as connection:
            # A host's own test run that was refused leaves its test database behind.
            for each in (name, f"test_{name}"):
                drop = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(each))
                try:
                    connection.execute(drop + sql.SQL(" WITH (FORCE)"))
                except psycopg.errors.InsufficientPrivilege:
                    # Before PostgreSQL 16 FORCE may not end an autovacuum worker; without it the server does so itself.
                    connection.execute(drop)
        self._names.discard(name)

    def close(self) -> None:
        """Drop whatever is left, and wait for that."""
        self._thread.shutdown(wait=True)
        for name in list(self._names):
            self._drop(name)
