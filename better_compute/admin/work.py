"""The work queue's page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import CheckboxInput
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from better_compute.admin import ages, charts, requeue, texts
from better_compute.admin.filters import FailingFilter, KindFilter, hosted_kinds
from better_compute.admin.read_only import ReadOnlyAdmin, link, moment, outside_atomic_requests
from better_compute.models import WorkItem
from better_compute.store import clock, history


class WorkAdmin(ReadOnlyAdmin):
    """What is queued, by kind and key; with a kind chosen, its keys in order."""

    list_display = ("key_column", "kind_link", "error_line", "due", "attempts", "every")
    list_display_links = ("key_column",)
    fields = (
        "kind_link", "whole_key", "shard_column", "due", "every", "attempts", "retry_floor_at", "enqueued",
        "generation", "id", "failed", "error_text",
    )  # fmt: skip
    list_filter = (KindFilter, FailingFilter)
    search_fields = ("key",)
    search_help_text = "A whole key; with a kind chosen, the beginning of one"
    actions = ("requeue_now",)
    empty_text = "Nothing is queued: every key that was enqueued has run."

    due = moment("not_before", "due")
    enqueued = moment("enqueued_at", "enqueued")
    failed = moment("last_error_at", "failed")
    retry_floor_at = moment("retry_floor", "not retried before")

    @admin.display(description="key")
    def key_column(self, obj: WorkItem) -> str:
        """The key, cut where it is very long."""
        return texts.line(obj.key)

    @admin.display(description="key")
    def whole_key(self, obj: WorkItem) -> str:
        """The key in full."""
        return texts.line(obj.key, 4_096)

    @admin.display(description="kind")
    def kind_link(self, obj: WorkItem) -> SafeString:
        """The kind, leading to its keys."""
        return link(self.list_url(kind=obj.kind), obj.kind)

    @admin.display(description="every")
    def every(self, obj: WorkItem) -> str:
        """How often a periodic key comes back."""
        return f"{obj.every_ms / 1000:g} s" if obj.every_ms else "-"

    @admin.display(description="shard")
    def shard_column(self, obj: WorkItem) -> str:
        """The shard; a reconciler that is not sharded has none."""
        return str(obj.shard) if obj.shard >= 0 else "-"

    @admin.display(description="last error")
    def error_line(self, obj: WorkItem) -> str | SafeString:
        """The first line of the last error and its age."""
        if not obj.last_error or obj.last_error_at is None:
            return "-"
        line = texts.line(obj.last_error.strip().partition("\n")[0])
        age = ages.relative(obj.last_error_at, obj.read_at)  # type: ignore[attr-defined]
        return format_html('<span class="compute-error">{}</span> <span class="compute-stamp">{}</span>', line, age)

    @admin.display(description="last error")
    def error_text(self, obj: WorkItem) -> str | SafeString:
        """The last error in full."""
        return (
            format_html('<pre class="compute-json" tabindex="0">{}</pre>', texts.text(obj.last_error))
            if obj.last_error
            else "-"
        )

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """The primary key's order; the newest failure first among failing keys."""
        return ("-last_error_at",) if request.GET.get("state") == "failing" else ("kind", "key")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[WorkItem], search_term: str
    ) -> tuple[QuerySet[WorkItem], bool]:
        """A whole key of any hosted kind, or the beginning of a key of the chosen kind: both by the primary key."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if request.GET.get("kind"):
            return queryset.filter(key__startswith=term), False
        return queryset.filter(kind__in=hosted_kinds(), key=term), False

    def object_id(self, obj: WorkItem) -> str:
        """Kind and key: the table has no index on its incarnation id."""
        return requeue.token_of(obj.kind, obj.key)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> WorkItem | None:
        """The row of a kind and a key."""
        pair = requeue.pair_of(object_id)
        found = self.get_queryset(request).filter(kind=pair[0], key=pair[1])[:1] if pair else ()
        return next(iter(found), None)

    def action_checkbox(self, obj: WorkItem) -> SafeString:
        """A check box that carries kind and key."""
        attrs = {"class": "action-select", "aria-label": f"Select {obj} for an action"}
        return CheckboxInput(attrs, lambda _: False).render(ACTION_CHECKBOX_NAME, self.object_id(obj))

    @admin.action(description="Requeue now")
    def requeue_now(self, request: HttpRequest, queryset: Any) -> None:
        """Offered in the list; :meth:`response_action` answers it."""

    def response_action(self, request: HttpRequest, queryset: Any, action_location: Any = None) -> HttpResponse | None:
        """Ask before requeueing what was ticked, or say that no action was chosen."""
        if "requeue_now" not in request.POST.getlist("action"):
            self.message_user(request, "Choose an action before pressing Go.", level="WARNING")
            return None
        return requeue.ask(self, request)

    def get_urls(self) -> list[URLPattern]:
        """The requeue page and the history besides the stock ones."""
        view = self.admin_site.admin_view
        return [
            path("requeue/", view(self.requeue_view), name="compute_workitem_requeue"),
            path("history/", view(self.depth_view), name="compute_workitem_history"),
            *super().get_urls(),
        ]

    @outside_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the way to the queues over time."""
        url = reverse("admin:compute_workitem_history", current_app=self.admin_site.name)
        tools = [{"url": url, "text": "Queues over time"}]
        return super().changelist_view(request, {"tools": tools, **(extra_context or {})})

    @outside_atomic_requests
    def depth_view(self, request: HttpRequest) -> HttpResponse:
        """The queues over time: all together, and each by itself."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self._bounded(request, lambda: self._depth(request))

    def _depth(self, request: HttpRequest) -> HttpResponse:
        span = request.GET.get("span", "")
        key = span if span in charts.SPANS else "24h"
        words, step, slots = charts.SPANS[key]
        past = history.read(clock.now(), step=step, slots=slots)
        context = {
            **self.admin_site.each_context(request),
            "title": "Queues over time",
            "opts": self.opts,
            "chart": charts.stacked(past),
            "plots": charts.small(past),
            "span": words,
            "span_key": key,
            "spans": [(name, each[0]) for name, each in charts.SPANS.items()],
            "step": ages.span(step),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "compute/history.html", context)

    @outside_atomic_requests
    def requeue_view(self, request: HttpRequest) -> HttpResponse:
        """Ask, then requeue; POST only."""
        return requeue.view(self, request)
