"""The pages of workers, which hold leases, and of processes, which host modules."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from better_compute.admin.read_only import ReadOnlyAdmin, link, list_url, moment, pretty
from better_compute.models import Lease, Process, Worker


class WorkerAdmin(ReadOnlyAdmin):
    """Members, those whose lease time ends last first."""

    list_display = ("id", "role", "place", "state", "expires", "started", "leases")
    fields = (
        "id", "role", "place", "state", "expires", "started", "connections", "backend_pid", "leases", "running",
    )  # fmt: skip
    ordering = ("-expires_at",)
    empty_text = "No worker has started, so work waits. Start one: manage.py compute_serve --roles all."

    expires = moment("expires_at", "expires")
    started = moment("started_at", "started")

    @admin.display(description="process")
    def place(self, obj: Worker) -> str:
        """Host and process id."""
        return f"{obj.host}:{obj.pid}"

    @admin.display(description="state")
    def state(self, obj: Any) -> SafeString:
        """Whether it renewed in time, and whether it is stopping."""
        word = "expired" if obj.expires_at <= obj.read_at else "draining" if obj.draining else "live"
        return format_html('<span class="compute-mark compute-{}">{}</span>', word, word)

    @admin.display(description="leases")
    def leases(self, obj: Worker) -> SafeString:
        """Leads to what it holds."""
        return link(list_url(self.admin_site, Lease, holder=obj.id), "leases held")

    @admin.display(description="running")
    def running(self, obj: Worker) -> SafeString:
        """The keys of the batch that runs."""
        return pretty(obj.inflight)


class ProcessAdmin(ReadOnlyAdmin):
    """Processes, those seen last first."""

    list_display = ("place", "role", "seen", "started", "connections", "short_fingerprint")
    fields = ("id", "place", "role", "seen", "started", "connections", "fingerprint", "hosted")
    ordering = ("-seen_at",)
    empty_text = "No process has announced itself. Start one: manage.py compute_serve --roles all."

    seen = moment("seen_at", "seen")
    started = moment("started_at", "started")

    @admin.display(description="process")
    def place(self, obj: Process) -> str:
        """Host and process id."""
        return f"{obj.host}:{obj.pid}"

    @admin.display(description="fingerprint")
    def short_fingerprint(self, obj: Process) -> str:
        """Enough of the fingerprint to compare by eye."""
        return obj.fingerprint[:12]

    @admin.display(description="modules")
    def hosted(self, obj: Process) -> SafeString:
        """The modules it hosts."""
        return pretty(obj.modules)
