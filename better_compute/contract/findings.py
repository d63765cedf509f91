"""What a self-check returns, and the report that collects it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Something an operator can act on.

    ``check`` is a stable dotted name, ``message`` says what is wrong with its values, ``fix`` says how to
    mend it, ``count`` how many of the thing there are.
    """

    check: str
    severity: Severity
    message: str
    fix: str
    count: int | None = None


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The same answer from ``compute.self_check()``, ``system.selfCheck`` and ``manage.py doctor``."""

    ok: bool
    findings: list[Finding]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Report:
        """Collect findings; the report is not ok exactly when one of them is an error."""
        collected = list(findings)
        return cls(ok=all(finding.severity != "error" for finding in collected), findings=collected)
