"""The outbox's page."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from better_compute.admin import texts
from better_compute.admin.filters import TenantFilter
from better_compute.admin.read_only import ReadOnlyAdmin, link, moment, pretty
from better_compute.models import OutboxEvent

_MAX_BIGINT = 2**63 - 1


class OutboxAdmin(ReadOnlyAdmin):
    """Events, newest first."""

    list_display = ("id", "type_column", "tenant_link", "subject_column", "created")
    fields = ("id", "type_column", "tenant_link", "whole_subject", "created", "xid", "trace_context", "data_json")
    list_filter = (TenantFilter,)
    ordering = ("-id",)
    empty_text = "No event was published yet."
    search_fields = ("id",)
    search_help_text = "An event's id or a whole tenant id"

    created = moment("created_at", "created")

    @admin.display(description="tenant")
    def tenant_link(self, obj: OutboxEvent) -> SafeString:
        """The tenant, leading to its events."""
        return link(self.list_url(tenant=obj.tenant_id), texts.line(obj.tenant_id, 128))

    @admin.display(description="type")
    def type_column(self, obj: OutboxEvent) -> str:
        """What happened."""
        return texts.line(obj.type, 128)

    @admin.display(description="subject")
    def whole_subject(self, obj: OutboxEvent) -> str:
        """The subject in full."""
        return texts.line(obj.subject, 65_536)

    @admin.display(description="subject")
    def subject_column(self, obj: OutboxEvent) -> str:
        """The subject, cut where it is very long."""
        return texts.line(obj.subject)

    @admin.display(description="data")
    def data_json(self, obj: OutboxEvent) -> SafeString:
        """The event's data."""
        return pretty(obj.data)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[OutboxEvent], search_term: str
    ) -> tuple[QuerySet[OutboxEvent], bool]:
        """By id when it is a number, else by tenant."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.isascii() and term.isdecimal() and int(term) <= _MAX_BIGINT:
            return queryset.filter(id=int(term)), False
        return queryset.filter(tenant_id=term), False
