"""Fault points: the places in a run at which a test may stop, crash or fail it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from better_compute.contract.contexts import ReconcileContext
from better_compute.contract.outcomes import Outcome
from better_compute.contract.reconcilers import BatchReconciler, Reconciler
from better_compute.contract.sql import QueryResult
from better_compute.store import transaction

#: In the order in which a run reaches them. ``fencing`` to ``committed`` come once for every transaction it opens.
Point = Literal["started", "fencing", "fenced", "committing", "committed", "ended"]

#: Told the point and the run's keys; may stand still there, or raise.
Reach = Callable[[Point, Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class WatchedSql:
    """``ctx.sql`` that says when it stands before, inside and after a fenced transaction."""

    inner: Any
    reach: Callable[[Point], None]

    def query(self, sql: str, params: Sequence[Any] | Mapping[str, Any] = ()) -> QueryResult:
        """See the port."""
        found: QueryResult = self.inner.query(sql, params)
        return found

    def transaction(self) -> AbstractContextManager[None]:
        """See the port; a savepoint says nothing."""
        return self.inner.transaction() if transaction.is_open() else self._outermost()

    @contextmanager
    def _outermost(self) -> Iterator[None]:
        self.reach("fencing")
        with self.inner.transaction():
            self.reach("fenced")
            yield
            self.reach("committing")
        self.reach("committed")


def watched(reconciler: Reconciler, reach: Reach) -> Reconciler:
    """``reconciler`` with its fault points: the same name, kind and answers."""
    return (_WatchedMany if isinstance(reconciler, BatchReconciler) else _Watched)(reconciler, reach)


class _Watched(Reconciler):
    def __init__(self, inner: Reconciler, reach: Reach) -> None:
        self._inner, self._reach = inner, reach
        for name in ("name", "shard_by", "periodic", "role"):
            setattr(self, name, getattr(inner, name))

    def _context(self, ctx: Any, keys: Sequence[str]) -> Any:
        return replace(ctx, sql=WatchedSql(ctx.sql, lambda point: self._reach(point, keys)))

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Run it between its points."""
        self._reach("started", [key])
        outcome = self._inner.run(self._context(ctx, [key]), key)
        self._reach("ended", [key])
        return outcome


class _WatchedMany(_Watched, BatchReconciler):
    def run_many(self, ctx: ReconcileContext, keys: Sequence[str]) -> Mapping[str, Outcome]:
        """Run it between its points."""
        self._reach("started", keys)
        assert isinstance(self._inner, BatchReconciler)  # noqa: S101 - watched() chose it
        answers = self._inner.run_many(self._context(ctx, keys), keys)
        self._reach("ended", keys)
        return answers
