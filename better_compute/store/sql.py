"""The ``ctx.sql`` port over Django's connection, so that SQL and the ORM share one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from django.db import connections

from better_compute import conf
from better_compute.contract.sql import QueryResult
from better_compute.store import transaction


@dataclass(frozen=True, slots=True)
class SqlPort:
    """``fence`` runs at the start of every outermost transaction of a reconciler."""

    fence: Callable[[], None] | None = None

    def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> QueryResult:
        """Run one statement; see :class:`better_compute.contract.sql.Sql`."""
        with connections[conf.current().database].cursor() as cursor:
            cursor.execute(sql, params or None)
            if cursor.description is None:
                return QueryResult([], cursor.rowcount)
            names = [column.name for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            return QueryResult(rows, cursor.rowcount)

    def transaction(self) -> AbstractContextManager[None]:
        """Open a transaction, or a savepoint inside the one that is open."""
        return transaction.transaction(first=self.fence, fenced=self.fence is not None)
