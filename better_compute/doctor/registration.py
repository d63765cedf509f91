"""The system checks of the tag ``compute`` as findings."""

from __future__ import annotations

from django.core.checks import ERROR, WARNING, CheckMessage, run_checks

from better_compute.contract.findings import Finding, Severity
from better_compute.registry import ids
from better_compute.registry.checks import TAG

#: Checks whose finding has a name of its own.
_NAMES = {ids.UNDECLARED: "catalog.undeclared"}


def findings(using: str | None, path: str | None = None) -> list[Finding]:
    """Run the checks and convert what they say; silenced ones are left out.

    Parameters
    ----------
    using
        Alias for checks of Django's tag ``database``; None leaves those out.
    path
        Import path of the module whose messages are wanted; None for all.
    """
    messages = run_checks(tags=[TAG], databases=None if using is None else [using])
    return [
        _finding(message) for message in messages if not message.is_silenced() and (path is None or message.obj == path)
    ]


def _finding(message: CheckMessage) -> Finding:
    return Finding(
        check=_NAMES.get(message.id or "", message.id or TAG),
        severity=_severity(message.level),
        message=message.msg,
        fix=message.hint or "Correct what the message names.",
    )


def _severity(level: int) -> Severity:
    if level >= ERROR:
        return "error"
    return "warning" if level >= WARNING else "info"
