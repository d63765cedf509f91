"""Django's record of applied migrations, with a ledger row beside each one that a hosted module owns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.recorder import MigrationRecorder

from better_compute.ledger import checksum
from better_compute.ledger.owners import Owner
from better_compute.store import ledger_rows


class LedgerRecorder(MigrationRecorder):
    """Writes the ``django_migrations`` row and the ledger row in one transaction, applied ones in one statement.

    The hook stands here and not in the executor, because Django records a squashed migration's names
    straight through the recorder, and because the executor's own hook has another signature on Django 6.1.
    """

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        owners: Mapping[str, Owner],
        shipped: Mapping[tuple[str, str], Migration],
    ) -> None:
        super().__init__(connection)
        self._owners = owners
        self._shipped = shipped
        self._running: Migration | None = None
        self._action: ledger_rows.Action = "adopted"
        self._started = 0.0
        self._ledger_seen = False

    @contextmanager
    def running(self, migration: Migration, action: ledger_rows.Action) -> Iterator[None]:
        """Say which migration the rows written inside come from, and what it does."""
        self._running, self._action, self._started = migration, action, monotonic()
        try:
            yield
        finally:
            self._running, self._action = None, "adopted"

    def record_applied(self, app: str, name: str) -> None:
        """Record that a migration stands in the schema."""
        # Outside a run Django records a squash because all that it replaces is applied.
        row = self._row(app, name, self._action, None if self._running else "all that it replaces is applied")
        self.ensure_schema()
        if row is None:
            super().record_applied(app, name)
        else:
            ledger_rows.append_and_record(self.connection, row, app, name)

    def record_unapplied(self, app: str, name: str) -> None:
        """Record that a migration is out of the schema."""
        with transaction.atomic(using=self.connection.alias, savepoint=False):
            self._ledger_seen = False
            super().record_unapplied(app, name)
            self.append(app, name, self._action if self._running else "reverted")

    def append(self, app: str, name: str, action: ledger_rows.Action, reason: str | None = None) -> None:
        """Append a ledger row for a hosted module's migration; other apps have none."""
        row = self._row(app, name, action, reason)
        if row is not None:
            ledger_rows.append(self.connection, row)

    def _row(self, app: str, name: str, action: ledger_rows.Action, reason: str | None) -> ledger_rows.LedgerRow | None:
        owner = self._owners.get(app)
        if owner is None or not self._has_ledger():
            return None
        # A squashed name whose file is gone, or one that is pruned, has the sum of what stands for it.
        source = self._shipped.get((app, name)) or self._running
        elapsed = monotonic() - self._started if self._running else 0.0
        ledger_name = owner.ledger_name(name)
        return ledger_rows.LedgerRow(
            owner=owner.name,
            name=ledger_name,
            action=action,
            checksum=checksum.of(source) if source else self._last_checksum(ledger_name),
            version=owner.version,
            reason=reason,
            duration_ms=round(elapsed * 1000),
        )

    def _has_ledger(self) -> bool:
        # Asked until it is there; reverting core/0001 takes it away again.
        self._ledger_seen = self._ledger_seen or ledger_rows.exists(self.connection)
        return self._ledger_seen

    def _last_checksum(self, ledger_name: str) -> str:
        row = ledger_rows.standings(self.connection).get(ledger_name)
        return row.checksum if row else checksum.UNKNOWN
