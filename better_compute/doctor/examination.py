"""Collects findings: of the core first, then of every module in hosted order. Reads only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, get_args

from better_compute import conf, registry
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.findings import Finding, Report, Severity
from better_compute.contract.module import ModuleSpec
from better_compute.doctor import clocks, isolation, processes, registration, retention, schema, secrets, work, workers
from better_compute.engine.contexts import module_context
from better_compute.ledger import findings as migrations
from better_compute.registry.order import CORE
from better_compute.store import failures, health

log = logging.getLogger(__name__)

#: The core's own checks in the order in which they are reported; each queries the database it is given.
CORE_CHECKS: Final[tuple[Callable[[str], Iterable[Finding]], ...]] = (
    migrations.check,
    work.waiting,
    work.stuck,
    work.long_running,
    work.snapshots,
    work.paused,
    workers.unheld,
    clocks.check,
    isolation.check,
    isolation.standby,
    processes.fingerprints,
    processes.connections,
    secrets.missing,
    retention.partitions,
    retention.answers,
)

#: SQLSTATE of a statement that ran into its timeout, or into that of a lock.
_HELD_UP: Final = ("57014", "55P03")
_WAIT: Final = (
    "See in pg_stat_activity who holds a lock or keeps the database busy, and run doctor again; a self_check that is "
    "always this slow needs cheaper statements."
)


def report(module: str | None = None) -> Report:
    """Collect findings; never raises for what it finds, and writes nothing.

    Each check runs READ ONLY in a transaction of its own (a savepoint inside a call) under a statement
    timeout. One that raises becomes an error ``module.<name>``. A database that cannot be reached or is not
    migrated is one finding, and what needs it is left out.

    Parameters
    ----------
    module
        Report on this module only.

    Raises
    ------
    ComputeError
        NOT_FOUND when ``module`` is not hosted.
    """
    findings = registration.findings(None)
    try:
        hosted = registry.current()
        using = conf.current().database
    except ComputeError as broken:
        return Report.of(findings or [_broken(broken)])
    if module is not None:
        spec = hosted.module(module)
        findings = registration.findings(None, spec.path)
        return Report.of([*findings, *_examined(using, [spec], core=spec.name == CORE)])
    return Report.of([*findings, *_examined(using, hosted.modules, core=True)])


def _examined(using: str, specs: Iterable[ModuleSpec], *, core: bool) -> list[Finding]:
    unreachable = schema.unreachable(using)
    if unreachable is not None:
        return [unreachable]
    pending, findings = schema.pending(using)
    unmigrated = {name.partition("/")[0] for name in pending}
    if CORE in unmigrated or (findings and not pending):
        return findings
    if core:
        for check in CORE_CHECKS:
            found = _guarded(using, CORE, lambda check=check: check(using))  # type: ignore[misc]
            # What keeps one of them from reading keeps others too, and is told once.
            findings += [finding for finding in found if finding not in findings]
    for spec in specs:
        # A module whose tables are not there yet is explained by the finding on pending migrations.
        if spec.self_check is not None and spec.name not in unmigrated:
            findings += _guarded(using, spec.name, lambda spec=spec: spec.self_check(module_context(spec)))  # type: ignore[misc]
    return findings


def _guarded(using: str, name: str, check: Callable[[], Any]) -> list[Finding]:
    try:
        with health.reading(using):
            return [_sound(finding) for finding in check() or ()]
    except Exception as failure:
        held_up = getattr(failure.__cause__, "sqlstate", None) in _HELD_UP
        if not held_up:
            log.warning("the self-check of module %s failed\n%s", name, failures.trace_failure(failure))
        return [
            Finding(
                check=f"module.{name}",
                severity="error",
                message=f"The self-check of module {name!r} failed. {failures.describe_failure(failure)}",
                fix=_WAIT if held_up else "See this process's log for the traceback, and mend the module's self_check.",
            )
        ]


def _sound(finding: object) -> Finding:
    if not isinstance(finding, Finding):
        raise TypeError(f"self_check gave {type(finding).__name__} instead of Finding")
    if finding.severity not in get_args(Severity):
        raise ValueError(f"self_check gave severity {finding.severity!r}; choose one of {get_args(Severity)}")
    return finding


def _broken(refusal: ComputeError) -> Finding:
    return Finding(
        check=f"registry.{ErrorCode(refusal.code).value.lower().replace('_', '-')}",
        severity="error",
        message=refusal.message,
        fix=refusal.mend or "Run `manage.py check`.",
    )
