"""The processes that are up: what they host, and how many connections they may hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from better_compute import registry
from better_compute.contract.findings import Finding
from better_compute.store import health

#: Share of the available connections from which on it is a warning.
NEARLY_ALL: Final = 0.8
#: Most processes that a finding names.
_NAMED: Final = 3


def fingerprints(using: str) -> Iterator[Finding]:
    """Live processes that host something else than this one."""
    hosted = registry.current()
    others = [process for process in health.live_processes(using) if process.fingerprint != hosted.fingerprint]
    if not others:
        return
    mine = {spec.name for spec in hosted.modules}
    named = "; ".join(
        f"{process.role} {process.host}:{process.pid} {_difference(mine, set(process.modules))}"
        for process in others[:_NAMED]
    )
    counted = "1 live process hosts" if len(others) == 1 else f"{len(others)} live processes host"
    yield Finding(
        check="registry.fingerprint",
        severity="warning",
        message=f"{counted} another set of modules: {named}.",
        fix="Finish the deployment: restart every process with the same release and INSTALLED_APPS.",
        count=len(others),
    )


def _difference(mine: set[str], theirs: set[str]) -> str:
    parts = [f"with {name}" for name in sorted(theirs - mine)] + [f"without {name}" for name in sorted(mine - theirs)]
    return ", ".join(parts) or "with another release of them"


def connections(using: str) -> Iterator[Finding]:
    """Whether the live processes may together hold more connections than the server gives."""
    budget = health.connection_budget(using)
    if budget.stated <= budget.available * NEARLY_ALL:
        return
    yield Finding(
        check="connections.sum",
        severity="error" if budget.stated > budget.available else "warning",
        message=f"{budget.processes} processes may hold {budget.stated} connections together; "
        f"PostgreSQL has {budget.available} for them.",
        fix="Raise max_connections, run fewer threads or processes, or put a pooler in front.",
        count=budget.stated,
    )
