"""The home page's content: each part read by itself, a part that cannot be read becoming a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from django.contrib.admin import AdminSite
from django.db import DatabaseError, transaction as django_transaction
from django.http import HttpRequest

from better_compute import conf, doctor
from better_compute.admin import charts, pictures
from better_compute.admin.failure import finding_of
from better_compute.admin.filters import hosted_kinds
from better_compute.contract.findings import Finding
from better_compute.engine import pausing
from better_compute.models import AuditEvent, Lease, MigrationRecord, Pause, Process, Worker, WorkItem
from better_compute.store import clock, history, overview

_Part = TypeVar("_Part")
_BY_SEVERITY: Final = {"error": 0, "warning": 1, "info": 2}
#: Findings shown; the rest are counted.
_MOST_FINDINGS: Final = 100
#: Of :data:`charts.SPANS`.
_SPAN: Final = "6h"


def content(site: AdminSite, request: HttpRequest) -> dict[str, Any]:
    """What ``compute/home.html`` shows of what this user may view.

    It reads in a fixed number of statements, each of them bounded, and never raises for a database that is
    not migrated, too slow or forbids a table: that is a finding.
    """
    may = {
        name: site.is_registered(model) and request.user.has_perm(f"compute.view_{name}")
        for model in (WorkItem, Lease, MigrationRecord, Worker, Process, AuditEvent, Pause)
        if (name := str(model._meta.model_name))
    }
    if not any(may.values()):
        return {"compute_home": None}
    reader = _Reader()
    home: dict[str, Any] = {"may": may}
    try:
        with overview.bounded():
            now = reader.part("clock", clock.now) or datetime.now(UTC)
            if may["workitem"] or may["worker"]:
                home["paused"] = reader.part("pauses", lambda: {each.scope: each for each in pausing.paused()}) or {}
            if may["workitem"]:
                past = reader.part("history", lambda: _history(now))
                home["chart"] = None if past is None else charts.stacked(past)
                home["bars"] = reader.part("work", lambda: _bars(now, past, home["paused"]))
                home["errors"] = reader.part("errors", overview.errors)
            if may["auditevent"]:
                home["refusals"] = reader.part("refusals", overview.refusals)
            if may["lease"]:
                home["leases"] = reader.part("leases", lambda: _leases(now))
            if may["migrationrecord"]:
                home["ledger"] = reader.part("ledger", overview.ledger)
            if may["worker"]:
                home["workers"] = reader.part("workers", lambda: _workers(home["paused"]))
            if may["process"]:
                home["processes"] = reader.part("processes", overview.processes)
    except DatabaseError as error:
        reader.findings.append(finding_of("admin.database", error))
        now = datetime.now(UTC)
    findings = sorted([*reader.findings, *_doctor()], key=lambda finding: _BY_SEVERITY[finding.severity])
    home |= {
        "now": now,
        "findings": findings[:_MOST_FINDINGS],
        "more_findings": max(len(findings) - _MOST_FINDINGS, 0),
        "ok": all(finding.severity != "error" for finding in findings),
        "cap": overview.CAP,
        "span": charts.SPANS[_SPAN][0],
    }
    return {"compute_home": home}


class _Reader:
    """Reads parts, each in a savepoint, and keeps what went wrong."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def part(self, name: str, read: Callable[[], _Part]) -> _Part | None:
        """The part, or None when the database refused it."""
        try:
            with django_transaction.atomic(using=conf.current().database):
                return read()
        except DatabaseError as error:
            self.findings.append(finding_of(f"admin.{name}", error))
            return None


@dataclass(frozen=True, slots=True)
class Queue:
    """A line of the queue's table: the bar, the last hours as areas, and what was paused, if it was."""

    bar: pictures.Bar
    spark: list[str]
    pause: Any


def _history(now: datetime) -> history.History:
    _, step, slots = charts.SPANS[_SPAN]
    return history.read(now, step=step, slots=slots)


def _bars(now: datetime, past: history.History | None, paused: Mapping[str, Any]) -> list[Queue]:
    return [
        Queue(bar, charts.spark(past, bar.depth.kind) if past else [], paused.get(f"kind:{bar.depth.kind}"))
        for bar in pictures.bars(_depths(), now)
    ]


def _workers(paused: Mapping[str, Any]) -> list[tuple[overview.WorkerRow, Any]]:
    return [(worker, paused.get(f"member:{worker.id}")) for worker in overview.workers()]


def _depths() -> list[overview.KindDepth]:
    """Every hosted kind and every other one that has rows, by name."""
    found = {depth.kind: depth for depth in overview.depth()}
    return [found.get(kind) or overview.KindDepth(kind) for kind in sorted({*found, *hosted_kinds()})]


def _leases(now: datetime) -> dict[str, Any]:
    leases = overview.leases()
    others = [lease for lease in leases if "shard:" not in lease.name]
    return {
        "maps": pictures.shard_maps(leases, now),
        "singletons": [(lease, pictures.place(lease), pictures.state(lease)) for lease in others if lease.holder],
        "idle": [lease.name for lease in others if not lease.holder],
    }


def _doctor() -> list[Finding]:
    # A page for finding out what is wrong must come up whatever is wrong, the doctor included.
    try:
        return doctor.report().findings
    except Exception as error:
        return [finding_of("admin.doctor", error)]
