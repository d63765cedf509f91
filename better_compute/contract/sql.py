"""SQL of a module: statements it runs, and expressions that stand in the statements of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar SQL expression with ``%s`` parameters, to stand in a statement that someone else runs."""

    sql: str
    params: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a statement answered: rows as dictionaries, and how many rows it returned or touched."""

    rows: list[dict[str, Any]]
    row_count: int


class Sql(Protocol):
    """Parameterised SQL on the compute database; the ORM on the same connection joins the same transaction."""

    def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> QueryResult:
        """Run one statement with ``%s`` or ``%(name)s`` parameters."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Open a transaction, or a savepoint inside the one that is open.

        In a reconciler it begins by fencing the lease: :class:`LeaseLost` when the lease is gone.
        """
        ...
