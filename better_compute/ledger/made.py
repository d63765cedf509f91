"""What of a migration's making stands in the database: the evidence when Django's table and the ledger disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.migrations import AddField, CreateModel, Migration, RunSQL, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from better_compute.ledger import lint_sql
from better_compute.ledger.executor import LedgerExecutor
from better_compute.store import tables


def standing(executor: LedgerExecutor, migration: Migration) -> list[str]:
    """Tables, and columns as ``table.column``, that ``migration`` makes and that are there; reads only.

    Empty says nothing of a migration that makes neither.
    """
    state = executor.loader.project_state((migration.app_label, migration.name))
    made = sorted(set(_made(migration.operations, migration.app_label, state)))
    return tables.existing_parts(executor.connection, made)


def _made(operations: Iterable[Operation], label: str, state: ProjectState) -> Iterator[tuple[str, str | None]]:
    for operation in operations:
        if isinstance(operation, SeparateDatabaseAndState):
            yield from _made(operation.database_operations, label, state)
        elif isinstance(operation, RunSQL):
            created: set[str] = set()
            list(lint_sql.check(lint_sql.text_of(operation.sql), prefix="", is_core=None, created=created))
            yield from ((name, None) for name in created)
        elif isinstance(operation, CreateModel) and (label, operation.name_lower) in state.models:
            model = state.apps.get_model(label, operation.name)
            if model._meta.managed:
                yield model._meta.db_table, None
        elif isinstance(operation, AddField) and (label, operation.model_name_lower) in state.models:
            model = state.apps.get_model(label, operation.model_name)
            columns = [field.column for field in model._meta.local_fields if field.name == operation.name]
            yield from ((model._meta.db_table, column) for column in columns if model._meta.managed)
