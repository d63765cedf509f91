"""The audit trail's page."""

from __future__ import annotations

from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from better_compute.admin import texts
from better_compute.admin.filters import OutcomeFilter, TenantFilter
from better_compute.admin.read_only import ReadOnlyAdmin, link, moment
from better_compute.models import AuditEvent


class AuditAdmin(ReadOnlyAdmin):
    """Acts, newest first."""

    list_display = ("method_column", "outcome_column", "who", "tenant_link", "resource", "when")
    fields = (
        "id", "method", "action", "outcome_column", "who", "tenant_link", "whole_resource", "when", "request_column",
        "xid", "canonical_text", "salt_hex", "leaf_hash_hex",
    )  # fmt: skip
    list_filter = (OutcomeFilter, TenantFilter)
    ordering = ("-at", "-id")
    empty_text = "No act was recorded yet: mutations leave a record, and whatever was denied or failed."
    search_fields = ("id",)
    search_help_text = "A record's id or a whole tenant id"

    when = moment("at", "when")

    @admin.display(description="outcome")
    def outcome_column(self, obj: AuditEvent) -> SafeString:
        """Outcome and code."""
        return format_html(
            '<span class="compute-mark compute-{}">{}</span> {}', obj.outcome, obj.outcome, texts.line(obj.code or "")
        )

    @admin.display(description="tenant")
    def tenant_link(self, obj: AuditEvent) -> SafeString | str:
        """The tenant, leading to its records."""
        return link(self.list_url(tenant=obj.tenant_id), texts.line(obj.tenant_id, 128)) if obj.tenant_id else "-"

    @admin.display(description="method")
    def method_column(self, obj: AuditEvent) -> str:
        """What was called."""
        return texts.line(obj.method)

    @admin.display(description="principal")
    def who(self, obj: AuditEvent) -> str:
        """Who acted."""
        return texts.line(obj.principal)

    @admin.display(description="request")
    def request_column(self, obj: AuditEvent) -> str:
        """The request's id."""
        return texts.line(obj.request_id, 1_024)

    @admin.display(description="resource")
    def whole_resource(self, obj: AuditEvent) -> str:
        """What was acted on, in full."""
        return texts.line(f"{obj.resource_type}/{obj.resource_id}", 65_536)

    @admin.display(description="resource")
    def resource(self, obj: AuditEvent) -> str:
        """What was acted on."""
        return texts.line(f"{obj.resource_type}/{obj.resource_id}")

    @admin.display(description="canonical bytes")
    def canonical_text(self, obj: AuditEvent) -> SafeString:
        """The bytes that sealing hashes, as text."""
        text = texts.text(bytes(obj.canonical).decode("utf-8", "backslashreplace"))
        return format_html('<pre class="compute-json" tabindex="0">{}</pre>', text)

    @admin.display(description="salt")
    def salt_hex(self, obj: AuditEvent) -> str:
        """The salt in hexadecimal."""
        return bytes(obj.salt).hex()

    @admin.display(description="leaf hash")
    def leaf_hash_hex(self, obj: AuditEvent) -> str:
        """The leaf hash in hexadecimal."""
        return bytes(obj.leaf_hash).hex()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent], search_term: str
    ) -> tuple[QuerySet[AuditEvent], bool]:
        """By id when it is a UUID, else by tenant."""
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            return queryset.filter(id=UUID(term)), False
        except ValueError:
            return queryset.filter(tenant_id=term), False
