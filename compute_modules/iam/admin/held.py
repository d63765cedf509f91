"""The base of pages of what principals hold: grants and scoped tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from better_compute import ReadOnlyAdmin

from .page import Page, cut, state_mark


class Held(Page):
    """What principals hold in tenants, from a beginning, if it has one, until an end."""

    search_fields = ("principal_id",)
    search_help_text = "A whole principal (user/7, service/ci) or a whole tenant id"

    until = ReadOnlyAdmin.moment("expires_at", "until")
    revoked = ReadOnlyAdmin.moment("revoked_at", "revoked")

    @admin.display(description="principal")
    def principal_column(self, obj: Any) -> str:
        """Whose it is."""
        return cut(obj.principal_id)

    @admin.display(description="state")
    def state(self, obj: Any) -> SafeString:
        """By the database's clock."""
        shown: SafeString = state_mark(obj, getattr(obj, "starts_at", None))
        return shown

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By principal when there is a slash in it, else by tenant."""
        term = search_term.strip()
        if not term:
            return queryset, False
        return queryset.filter(**{"principal_id" if "/" in term else str(self.tenant_column): term}), False
