"""Metrics in the field's names (client-go's workqueue metrics), as a custom collector of prometheus-client.

Counters are this process's own. Gauges of the queue are computed at the scrape, in bounded statements: a depth
above the cap means "more than this many", and a database that does not answer in time leaves the gauges out and
sets ``compute_scrape_errors_total``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Final

from django.db import Error as DatabaseProblem

from better_compute.engine import runtime as worker, wakeup
from better_compute.engine.metrics import metrics
from better_compute.store import clock, overview

if TYPE_CHECKING:
    from prometheus_client import Metric

#: Our counters by kind: the sum's name, the metric's name, what it says.
KIND_COUNTERS: Final = (
    ("adds", "compute_workqueue_adds", "Commits of this process that woke a kind, one for each of its shards."),
    ("retries", "compute_workqueue_retries", "Runs that raised and come back with backoff."),
    ("runs", "compute_runs", "Runs that ended."),
    ("sync_again", "compute_sync_again", "Runs that answered SYNC_AGAIN."),
    ("fence_rejections", "compute_fence_rejections", "Runs that the fence refused because their lease was gone."),
    ("hung_runs", "compute_hung_runs", "Runs that were reported with their stack for taking too long."),
)
COUNTERS: Final = (
    ("lease_transitions", "compute_lease_transitions", "Times at which this process took or gave back leases."),
    ("members_buried", "compute_members_buried", "Dead members that this process buried."),
    ("resynced", "compute_resynced", "Missed wake-ups that a resync healed."),
    ("scrape_errors", "compute_scrape_errors", "Scrapes that could not ask the database."),
)


class Collector:
    """Collects on demand; register it, or use :func:`page`."""

    def collect(self) -> Iterator[Metric]:
        """Every metric."""
        yield from _counters()
        yield from _durations()
        yield from _running()
        yield from _wakeups()
        try:
            with overview.bounded():
                queues = list(_queues())
        except DatabaseProblem:
            metrics.add("scrape_errors")
            return
        yield from queues

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not ask the database."""
        return []


def _counters() -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    sums = metrics.snapshot()
    for name, metric, text in KIND_COUNTERS:
        family = CounterMetricFamily(metric, text, labels=["kind"])
        for (of, kind), value in sorted(sums.items()):
            if of == name and kind:
                family.add_metric([kind], value)
        yield family
    for name, metric, text in COUNTERS:
        yield CounterMetricFamily(metric, text, value=sums.get((name, ""), 0))


def _durations() -> Iterator[Metric]:
    from prometheus_client.core import SummaryMetricFamily

    sums = metrics.snapshot()
    for name, count, metric, text in (
        ("queue_duration_seconds", "claimed", "compute_workqueue_queue_duration_seconds", "From due to started."),
        ("work_duration_seconds", "runs", "compute_workqueue_work_duration_seconds", "What runs took."),
    ):
        family = SummaryMetricFamily(metric, text, labels=["kind"])
        for (of, kind), value in sorted(sums.items()):
            if of == count and kind:
                family.add_metric([kind], count_value=int(value), sum_value=sums.get((name, kind), 0.0))
        yield family


def _running() -> Iterator[Metric]:
    """Of what runs now; zero in a process that is no worker."""
    from prometheus_client.core import GaugeMetricFamily

    now = monotonic()
    seconds = [now - each.since for runtime in worker.running for each in tuple(runtime.turns.running.values())]
    yield GaugeMetricFamily(
        "compute_workqueue_unfinished_work_seconds", "Seconds that runs under way have taken so far.", sum(seconds)
    )
    yield GaugeMetricFamily(
        "compute_workqueue_longest_running_processor_seconds",
        "Seconds of the run that has taken longest.",
        max(seconds, default=0.0),
    )
    for runtime in worker.running:
        yield GaugeMetricFamily("compute_listener_up", "Whether LISTEN works.", float(runtime.listener.up))
        held = GaugeMetricFamily("compute_leases_held", "Leases of this process.", labels=["role"])
        trusted = GaugeMetricFamily("compute_leases_trusted", "Whether it may start keys.", labels=["role"])
        for membership in runtime.memberships:
            held.add_metric([membership.role], len(membership.holds))
            trusted.add_metric([membership.role], float(membership.trusted))
        yield held
        yield trusted


def _wakeups() -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    sent = CounterMetricFamily("compute_nudges", "Messages that wake workers.", labels=["through"])
    failed = CounterMetricFamily("compute_nudges_failed", "Messages that could not be sent.", labels=["through"])
    for coalescer in wakeup.senders():
        sent.add_metric([coalescer.name], coalescer.sent)
        failed.add_metric([coalescer.name], coalescer.failed)
    yield sent
    yield failed


def _queues() -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    now = clock.now()
    depth = GaugeMetricFamily(
        "compute_workqueue_depth", f"Due keys; above {overview.CAP} it means more.", labels=["kind"]
    )
    waiting = GaugeMetricFamily("compute_workqueue_waiting", "Keys that are not due yet.", labels=["kind"])
    failing = GaugeMetricFamily("compute_workqueue_failing", "Keys whose last run raised.", labels=["kind"])
    oldest = GaugeMetricFamily(
        "compute_workqueue_oldest_due_seconds", "How long the oldest due key has been due.", labels=["kind"]
    )
    for each in overview.depth():
        depth.add_metric([each.kind], each.due)
        waiting.add_metric([each.kind], each.future)
        failing.add_metric([each.kind], each.failing)
        age = 0.0 if each.oldest_due_at is None else (now - each.oldest_due_at).total_seconds()
        oldest.add_metric([each.kind], max(0.0, age))
    members = GaugeMetricFamily("compute_members", "Members of a role.", labels=["role", "state"])
    counts: dict[tuple[str, str], int] = {}
    for member in overview.workers(limit=1_000):
        state = ("draining" if member.draining else "live") if member.live else "dead"
        counts[member.role, state] = counts.get((member.role, state), 0) + 1
    for labels, count in sorted(counts.items()):
        members.add_metric(labels, count)
    yield from (depth, waiting, failing, oldest, members)
    yield GaugeMetricFamily(
        "compute_clock_difference_seconds",
        "The database's clock less this process's.",
        (now - datetime.now(UTC)).total_seconds(),
    )


def page() -> tuple[str, bytes]:
    """The content type and the text of ``/metrics``.

    Raises
    ------
    ModuleNotFoundError
        Without ``better-compute[observability]``.
    """
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    return CONTENT_TYPE_LATEST, generate_latest(registry)
