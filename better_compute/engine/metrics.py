"""Counters and gauges of this process's work, in the field's names (client-go's workqueue metrics)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Final


@dataclass(slots=True)
class Metrics:
    """Sums since the process started. Durations are in seconds."""

    #: (name, kind or "") to a sum.
    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def add(self, name: str, kind: str = "", amount: float = 1) -> None:
        """Add ``amount`` to ``name`` of ``kind``."""
        with self._lock:
            self.sums[name, kind] += amount  # type: ignore[assignment]

    def add_many(self, kind: str, **amounts: float) -> None:
        """Add to several names of ``kind`` at once."""
        with self._lock:
            for name, amount in amounts.items():
                if amount:
                    self.sums[name, kind] += amount  # type: ignore[assignment]

    def get(self, name: str, kind: str = "") -> float:
        """The sum so far."""
        with self._lock:
            return self.sums[name, kind]

    def snapshot(self) -> dict[tuple[str, str], float]:
        """Every sum."""
        with self._lock:
            return dict(self.sums)


#: Of this process.
metrics: Final = Metrics()
