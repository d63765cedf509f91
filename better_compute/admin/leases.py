"""The leases' page."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from better_compute.admin.filters import HolderFilter
from better_compute.admin.read_only import ReadOnlyAdmin, link, moment
from better_compute.models import Lease


class LeaseAdmin(ReadOnlyAdmin):
    """Who may run which shard or singleton."""

    list_display = ("name", "holder_link", "acquired", "epoch")
    list_filter = (HolderFilter,)
    fields = ("name", "holder_link", "acquired", "epoch")
    ordering = ("name",)
    list_per_page = 300
    search_fields = ("^name",)
    empty_text = "No lease was ever taken. Start a worker: manage.py compute_serve --roles controllers."
    search_help_text = "The beginning of a name, e.g. singleton:"

    acquired = moment("acquired_at", "held")

    @admin.display(description="holder")
    def holder_link(self, obj: Lease) -> SafeString | str:
        """The holder, leading to all it holds."""
        return link(self.list_url(holder=obj.holder), obj.holder) if obj.holder else "nobody"
