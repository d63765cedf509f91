"""The migration ledger's page."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from better_compute.admin import texts
from better_compute.admin.filters import OwnerFilter
from better_compute.admin.read_only import ReadOnlyAdmin, moment
from better_compute.models import MigrationRecord


class LedgerAdmin(ReadOnlyAdmin):
    """What was migrated, newest first."""

    list_display = ("name", "action", "applied", "duration", "version", "applied_by")
    fields = (
        "seq", "name", "owner", "action", "applied", "duration", "applied_by", "version", "checksum", "why",
    )  # fmt: skip
    list_filter = (OwnerFilter,)
    ordering = ("-seq",)
    empty_text = "The ledger is empty. Run manage.py compute_migrate."
    search_fields = ("name",)
    search_help_text = "The beginning of a name, e.g. core/0002"

    applied = moment("applied_at", "applied")

    @admin.display(description="reason")
    def why(self, obj: MigrationRecord) -> str:
        """Why, where a reason was given."""
        return texts.text(obj.reason) if obj.reason else "-"

    def duration(self, obj: MigrationRecord) -> str:
        """How long it ran."""
        return f"{obj.duration_ms} ms"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[MigrationRecord], search_term: str
    ) -> tuple[QuerySet[MigrationRecord], bool]:
        """By the beginning of the name."""
        term = search_term.strip()
        return (queryset.filter(name__startswith=term) if term else queryset), False
