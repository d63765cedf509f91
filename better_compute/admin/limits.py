"""The page of rate limits: which hold, and who met one lately. Nothing of it stands in the database."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from better_compute.admin.read_only import ReadOnlyAdmin, outside_atomic_requests
from better_compute.envelope import rate


class RateLimitAdmin(ReadOnlyAdmin):
    """One page instead of a list and its rows."""

    @outside_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The limits and the last hundred who met one."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        standing = rate.standing()
        limits = [
            ("each principal", standing.principal_per_minute, standing.principal_burst),
            ("each tenant", standing.tenant_per_minute, standing.tenant_burst),
        ]
        context = {
            **self.admin_site.each_context(request),
            "title": "Rate limits",
            "opts": self.opts,
            "standing": standing,
            "limits": [limit for limit in limits if limit[1]],
            "now": timezone.now(),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "compute/limits.html", context)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> None:
        """None: there are no rows."""
        return None
