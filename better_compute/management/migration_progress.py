"""What a running migration shows: a line with its duration for each, and on a terminal a bar below them."""

from __future__ import annotations

import os
import time
from typing import Any

from django.core.management.base import OutputWrapper
from django.db.migrations import Migration

from better_compute.ledger import owners

#: Width of the bar in characters.
BAR = 30
#: Columns of a terminal that does not say how wide it is.
COLUMNS = 80


class MigrationProgress:
    """Receives the executor's progress; ``seconds`` keeps how long each ledger name took."""

    def __init__(self, out: OutputWrapper, *, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._out = out
        self._quiet = quiet
        # A terminal that cannot go back to the start of a line gets lines only.
        self._bar = out.isatty() and not quiet and os.environ.get("TERM") != "dumb"
        self._names = {label: owner.name for label, owner in owners.hosted().items()}
        self._total = 0
        self._count = 0
        self._started = 0.0

    def __call__(self, action: str, migration: Migration | None = None, detail: Any = False) -> None:
        """Take one step of the executor."""
        if action == "plan":
            self._total = int(detail)
        elif migration is None:
            return
        elif action == "apply_start":
            self._started = time.monotonic()
            self._draw(self._title(migration))
        elif action == "lock_retry":
            self._line(f"{self._title(migration)} did not get its table locks in try {detail}; trying again")
        elif action == "apply_success":
            self._finish(migration, faked=bool(detail))

    def close(self) -> None:
        """Take the bar away; to be called however the run ended."""
        if self._bar:
            self._out.write("\r\x1b[K", ending="")
            self._out.flush()

    def _finish(self, migration: Migration, *, faked: bool) -> None:
        title, took = self._title(migration), time.monotonic() - self._started
        self.seconds[title] = round(took, 3)
        self._count += 1
        self._line(f"{title} {'recorded without being run' if faked else f'{took:.3f} s'}")
        if self._count < self._total:
            self._draw("")

    def _title(self, migration: Migration) -> str:
        owner = self._names.get(migration.app_label)
        return f"{owner}/{migration.name}" if owner else f"{migration.app_label}.{migration.name}"

    def _draw(self, title: str) -> None:
        if self._bar and self._total:
            filled = BAR * self._count // self._total
            bar = "#" * filled + "." * (BAR - filled)
            # A line that wraps could not be taken back.
            text = f"[{bar}] {self._count}/{self._total} {title}"[: self._columns() - 1]
            self._out.write(f"\r\x1b[K{text}", ending="")
            self._out.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or COLUMNS
        except OSError:
            return COLUMNS

    def _line(self, text: str) -> None:
        if self._bar:
            self._out.write("\r\x1b[K", ending="")
        if not self._quiet:
            self._out.write(text)
            self._out.flush()
