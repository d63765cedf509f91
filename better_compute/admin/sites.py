"""The admin site whose home page shows how the installation is doing."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.template.response import TemplateResponse

from better_compute.admin import home, texts
from better_compute.admin.read_only import outside_atomic_requests


class ComputeAdminSite(AdminSite):
    """Django's admin with the core's pages on it and a home page of its own.

    A host may use it as its only admin site and register its models on it as on any other.
    """

    site_header = "Better Compute"
    site_title = "Better Compute"
    index_title = "Overview"
    index_template = "compute/index.html"
    app_index_template = "compute/app_index.html"
    login_template = "compute/login.html"
    logout_template = "compute/logged_out.html"
    password_change_template = "compute/password_change.html"  # noqa: S105  (a template)
    password_change_done_template = "compute/password_changed.html"  # noqa: S105  (a template)

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        register_pages(self)

    @outside_atomic_requests
    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The home page."""
        page = super().index(request, {**home.content(self, request), **(extra_context or {})})
        page.add_post_render_callback(texts.unveil)
        return page


def register_pages(site: AdminSite) -> None:
    """Register the core's pages on an admin site. A :class:`ComputeAdminSite` has them already."""
    # Imported here: a site may be made while models are still being loaded.
    from better_compute import models
    from better_compute.access import Token
    from better_compute.admin.audit import AuditAdmin
    from better_compute.admin.idempotency import IdempotencyAdmin
    from better_compute.admin.leases import LeaseAdmin
    from better_compute.admin.ledger import LedgerAdmin
    from better_compute.admin.limits import RateLimitAdmin
    from better_compute.admin.members import ProcessAdmin, WorkerAdmin
    from better_compute.admin.outbox import OutboxAdmin
    from better_compute.admin.pauses import PauseAdmin
    from better_compute.admin.tokens import TokenAdmin
    from better_compute.admin.work import WorkAdmin

    for model, page in (
        (models.WorkItem, WorkAdmin),
        (models.Lease, LeaseAdmin),
        (models.Worker, WorkerAdmin),
        (models.Process, ProcessAdmin),
        (models.OutboxEvent, OutboxAdmin),
        (models.AuditEvent, AuditAdmin),
        (models.MigrationRecord, LedgerAdmin),
        (models.Pause, PauseAdmin),
        (models.IdempotencyRecord, IdempotencyAdmin),
        (models.RateLimit, RateLimitAdmin),
        (Token, TokenAdmin),
    ):
        if not site.is_registered(model):
            site.register(model, page)
