"""What a module's author should not ship, read from the migration files without a database.

These are advice on running systems, not rules of the contract: old code runs beside the new schema, tables
are large, and a module is removed some day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.db import models
from django.db.migrations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    AlterModelTable,
    AlterUniqueTogether,
    CreateModel,
    DeleteModel,
    Migration,
    RemoveField,
    RenameField,
    RenameModel,
    RunSQL,
    SeparateDatabaseAndState,
)
from django.db.migrations.operations.base import Operation
from django.db.models.functions import Now

from better_compute.contract.module import ModuleSpec
from better_compute.ledger import lint_sql
from better_compute.ledger.graph import CORE

#: Code of each rule and what it is about; the codes are stable.
RULES: Final = {
    "NOW_DEFAULT": "now() stands still within a transaction and does not move with compute_now()",
    "CORE_FOREIGN_KEY": "a foreign key onto a core table blocks the core's deletes after the plugin is gone",
    "TABLE_PREFIX": "a plugin's tables are told apart by their prefix",
    "BIG_LOCK": "it locks the table against writers while it works",
    "NO_REVERSE": "without a reverse, removal cannot undo it and a failed release cannot go back",
    "NOT_NULL": "old code inserts rows without the new column",
    "BREAKS_OLD_CODE": "old code still reads and writes the old name during a rolling upgrade",
}

_CORE_TABLE = re.compile(rf"{CORE}_\w+")


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to mend. ``str()`` is the line that the author reads."""

    code: str
    name: str
    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.name}: {self.code}: {self.what}; {RULES[self.code]}. {self.mend}"


def check(spec: ModuleSpec, migrations: Iterable[Migration]) -> list[Advice]:
    """Advice on every migration of ``spec``, in their order."""
    found: list[Advice] = []
    for migration in migrations:
        name = f"{spec.name}/{migration.name}"

        def advise(code: str, what: str, mend: str, name: str = name) -> Advice:
            return Advice(code, name, what, mend)

        # A table that the same migration has just made is empty, and no old code knows it.
        models_made: set[str] = set()
        tables_made: set[str] = set()
        for operation in _flat(migration.operations):
            fresh = str(getattr(operation, "model_name", "")).lower() in models_made
            found += _operation(spec, operation, advise, tables_made, fresh=fresh)
            if isinstance(operation, CreateModel):
                models_made.add(operation.name_lower)
                tables_made.add(
                    str(operation.options.get("db_table", f"{spec.label}_{operation.name_lower}")).strip('"')
                )
    return found


def _flat(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, SeparateDatabaseAndState):
            yield from _flat(operation.database_operations)
        else:
            yield operation


Advise = Callable[..., Advice]


def _operation(
    spec: ModuleSpec, operation: Operation, advise: Advise, tables: set[str], *, fresh: bool
) -> Iterator[Advice]:
    for name, field in _fields(operation):
        yield from _field(spec, name, field, advise)
    if not operation.reversible:
        yield advise("NO_REVERSE", operation.describe(), "Give it a reverse, even if that is RunSQL.noop.")
    if isinstance(operation, CreateModel):
        yield from _table(spec, operation, advise)
    elif isinstance(operation, RunSQL):
        yield from _sql(spec, operation, advise, tables)
    elif fresh:
        return
    elif isinstance(operation, AddField):
        yield from _new_column(operation, advise)
    elif isinstance(operation, AddIndex) and type(operation).__name__ != "AddIndexConcurrently":
        yield advise("BIG_LOCK", operation.describe(), "Use AddIndexConcurrently in a non-atomic migration of its own.")
    elif isinstance(operation, AddConstraint) and not type(operation).__name__.endswith("NotValid"):
        yield advise("BIG_LOCK", operation.describe(), "Add it NOT VALID first and validate it in the next migration.")
    elif isinstance(operation, AlterField) and not operation.field.null:
        yield advise("BIG_LOCK", operation.describe(), "Make sure that it rewrites nothing: sqlmigrate shows the SQL.")
    elif isinstance(operation, AlterUniqueTogether):
        if operation.option_value:
            yield advise("BIG_LOCK", operation.describe(), "Build the index concurrently and use it in a constraint.")
    elif isinstance(operation, RemoveField | RenameField | RenameModel | DeleteModel | AlterModelTable):
        yield advise("BREAKS_OLD_CODE", operation.describe(), "Do it one release after the last code that uses it.")


def _fields(operation: Operation) -> list[tuple[str, Any]]:
    if isinstance(operation, CreateModel):
        return list(operation.fields)
    if isinstance(operation, AddField | AlterField):
        return [(operation.name, operation.field)]
    return []


def _field(spec: ModuleSpec, name: str, field: Any, advise: Advise) -> Iterator[Advice]:
    default = getattr(field, "db_default", models.NOT_PROVIDED)
    default_name = getattr(getattr(field, "default", None), "__qualname__", "")
    if (
        isinstance(default, Now)
        or getattr(field, "auto_now", False)
        or getattr(field, "auto_now_add", False)
        or default_name in {"now", "datetime.now", "datetime.utcnow"}
    ):
        yield advise("NOW_DEFAULT", f"field {name!r}", "Use db_default=ComputeNow().")
    if spec.plugin_id and field.remote_field is not None:
        target = field.remote_field.model
        label = target.partition(".")[0] if isinstance(target, str) else target._meta.app_label
        if label == CORE or label.startswith(f"{CORE}_"):
            yield advise("CORE_FOREIGN_KEY", f"field {name!r} references {target}", "Store the id instead.")


def _table(spec: ModuleSpec, operation: CreateModel, advise: Advise) -> Iterator[Advice]:
    table = operation.options.get("db_table")
    prefix = _prefix(spec)
    if table and not str(table).strip('"').startswith(prefix):
        yield advise("TABLE_PREFIX", f"table {table!r}", f"Begin its name with {prefix!r}, or leave db_table out.")


def _prefix(spec: ModuleSpec) -> str:
    return f"plg_{spec.plugin_id.replace('-', '_')}_" if spec.plugin_id else ""


def _sql(spec: ModuleSpec, operation: RunSQL, advise: Advise, tables: set[str]) -> Iterator[Advice]:
    for found in lint_sql.check(
        lint_sql.text_of(operation.sql),
        prefix=_prefix(spec),
        is_core=_CORE_TABLE if spec.plugin_id else None,
        created=tables,
    ):
        yield advise(found.code, found.what, found.mend)


def _new_column(operation: AddField, advise: Advise) -> Iterator[Advice]:
    field = operation.field
    if not (field.null or field.many_to_many or field.db_default is not models.NOT_PROVIDED):
        yield advise(
            "NOT_NULL",
            f"new column {operation.name!r} is NOT NULL without a default in the database",
            "Give it db_default, or null=True until the next release.",
        )
    indexed = field.unique or getattr(field, "db_index", False)
    if indexed and field.remote_field is None:
        yield advise(
            "BIG_LOCK",
            f"new column {operation.name!r} is indexed at once",
            "Add the column first, and its index with AddIndexConcurrently in the next migration.",
        )
