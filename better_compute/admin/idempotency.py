"""The answers kept for Idempotency-Key."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from better_compute.admin import texts
from better_compute.admin.filters import PrincipalFilter
from better_compute.admin.read_only import ReadOnlyAdmin, link, moment
from better_compute.models import IdempotencyRecord


class IdempotencyAdmin(ReadOnlyAdmin):
    """Calls whose answer is replayed while it is kept, those kept longest first; the answers are not shown."""

    list_display = ("key_column", "method", "principal_link", "tenant", "created", "expires", "request_column")
    list_display_links = None
    list_filter = (PrincipalFilter,)
    search_fields = ("principal",)
    search_help_text = "A whole principal, e.g. user/7; with one chosen, the beginning of a tenant's id"
    empty_text = "No answer is kept. A call with an Idempotency-Key leaves one here until it expires."

    created = moment("created_at", "answered")
    expires = moment("expires_at", "kept until")

    @admin.display(description="Idempotency-Key")
    def key_column(self, obj: IdempotencyRecord) -> str:
        """The key, cut where it is very long."""
        return texts.line(obj.key, 64)

    @admin.display(description="principal")
    def principal_link(self, obj: IdempotencyRecord) -> SafeString:
        """Who called, leading to its records."""
        return link(self.list_url(principal=obj.principal), texts.line(obj.principal, 64))

    @admin.display(description="tenant")
    def tenant(self, obj: IdempotencyRecord) -> str:
        """In which tenant."""
        return texts.line(obj.tenant_id, 128) or "the installation"

    @admin.display(description="request")
    def request_column(self, obj: IdempotencyRecord) -> str:
        """The request that was answered, as the log and the audit trail name it."""
        return texts.line(obj.request_id, 40)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """By the index on expiry; with a principal chosen by the primary key, which begins with it."""
        chosen = request.GET.get("principal") or request.GET.get("q", "").strip()
        return ("principal", "tenant_id", "method", "key") if chosen else ("-expires_at",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[IdempotencyRecord], search_term: str
    ) -> tuple[QuerySet[IdempotencyRecord], bool]:
        """A whole principal; or the beginning of a tenant of the chosen principal."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if request.GET.get("principal"):
            return queryset.filter(tenant_id__startswith=term), False
        return queryset.filter(principal=term), False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> None:
        """None: it takes four columns to tell a row, so it has no page of its own."""
        return None
