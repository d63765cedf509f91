"""The checksum that tells an edited migration from the one that was applied."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec

from django.db.migrations import Migration, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation

from better_compute.contract.migrations import RunSqlFile
from better_compute.ledger.errors import Refused

#: Stands for a migration of which neither file nor ledger row is left.
UNKNOWN = "0" * 64


def of(migration: Migration) -> str:
    """SHA-256 (hex) of the migration's source and of the SQL files it runs, both normalised.

    Line endings, trailing white space and a byte order mark do not count, so that a checkout on another
    system or an editor's clean-up is not drift.

    Raises
    ------
    Refused
        When the package ships no source for the migration.
    """
    digest = hashlib.sha256()
    for part in [_source(migration), *_files(migration.operations)]:
        normal = normalise(part)
        # The length goes first, so that text moved from one part into the next changes the sum.
        digest.update(b"%d\n" % len(normal))
        digest.update(normal)
    return digest.hexdigest()


def normalise(source: bytes) -> bytes:
    """``source`` with LF line endings, no trailing white space and no byte order mark."""
    lines = source.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line.rstrip() for line in lines).rstrip(b"\n") + b"\n"


def _source(migration: Migration) -> bytes:
    module = import_module(type(migration).__module__)
    spec = module.__spec__ or find_spec(module.__name__)
    get_source = getattr(spec.loader, "get_source", None) if spec else None
    source = get_source(module.__name__) if get_source else None
    if source is None:
        raise Refused(
            f"Migration {migration.app_label}.{migration.name} has no source, so it cannot be told from an edited one.",
            mend="Ship the .py files of the module's migrations.",
        )
    return str(source).encode()


def _files(operations: Iterable[Operation]) -> Iterator[bytes]:
    for operation in operations:
        if isinstance(operation, RunSqlFile):
            yield from operation.files()
        elif isinstance(operation, SeparateDatabaseAndState):
            yield from _files(operation.database_operations)
