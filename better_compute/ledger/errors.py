"""Why a migration run stopped. Each reason has the exit code that automation branches on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from better_compute.contract.errors import ComputeError, ErrorCode


class LedgerError(ComputeError):
    """A migration run that stopped; ``exit_code`` is what ``manage.py compute_migrate`` ends with."""

    exit_code: ClassVar[int] = 4
    default_code: ClassVar[ErrorCode] = ErrorCode.INVALID_CONFIG

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(self.default_code, message, mend=mend)


class Refused(LedgerError):
    """The contract, the graph, the database or a role is not as it must be; nothing ran."""

    exit_code = 2

    @classmethod
    def all_of(cls, problems: Sequence[str]) -> Refused:
        """One refusal that lists every problem."""
        lines = "".join(f"\n  {problem}" for problem in problems)
        return cls(f"The migrations break these rules, so nothing was run:{lines}")


class Unreachable(Refused):
    """The database does not answer; nothing ran."""

    default_code = ErrorCode.STORAGE_BUSY


class LockNotAcquired(LedgerError):
    """Another migrator held the lock for longer than we were told to wait; nothing ran."""

    exit_code = 3
    default_code = ErrorCode.STORAGE_BUSY


class MigrationFailed(LedgerError):
    """A migration failed and left nothing behind; those before it are committed."""

    exit_code = 4
    default_code = ErrorCode.INTERNAL_ERROR


class LockLost(MigrationFailed):
    """The connection that held the lock was exchanged under us, by a pooler or a reconnect."""


class Drifted(LedgerError):
    """What is shipped differs from what the ledger says was applied; nothing ran."""

    exit_code = 5

    def __init__(self, drifts: Sequence[str]) -> None:
        self.drifts = tuple(drifts)
        lines = "".join(f"\n  {drift}" for drift in drifts)
        super().__init__(f"The ledger and the shipped migrations differ, so nothing was run:{lines}")
