"""The operator's page of tenants' states: teardowns with what blocks them, and the verbs, called like over REST."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from better_compute import ComputeError, ReadOnlyAdmin, compute, session_principal

from .blockers import Blocker
from .models import TenantState
from .states import State

_CONSEQUENCE = {
    "suspend": "Every change to {tenant} is refused from now on. What runs goes on running.",
    "resume": "Changes to {tenant} are allowed again.",
    "delete": "Everything of {tenant} is ended by every module. There is no way back.",
}


class ActForm(forms.Form):
    """A verb for a tenant."""

    tenant_id = forms.CharField(max_length=128, help_text="The tenant's id.")
    verb = forms.ChoiceField(choices=[(verb, verb) for verb in _CONSEQUENCE], help_text="What shall happen to it.")
    reason = forms.CharField(max_length=500, help_text="Why; the tenant is shown it.")


@admin.register(TenantState)
class TenantStateAdmin(ReadOnlyAdmin):
    """Tenants whose state was ever changed, by id."""

    change_list_template = "compute_tenancy/change_list.html"
    list_display = ("tenant_id", "state", "reason", "changed_at", "passes", "blocked_by")
    fields = ("tenant_id", "state", "reason", "changed_at", "passes", "last_pass_at", "teardown_done_at", "blocking")
    ordering = ("tenant_id",)
    search_fields = ("^tenant_id",)
    search_help_text = "The beginning of a tenant's id"

    @admin.display(description="blocked by")
    def blocked_by(self, obj: Any) -> str:
        """The modules that have not let go of it."""
        if obj.state != State.DELETING:
            return ""
        return ", ".join(f"{each.module} ({each.answer})" for each in _blockers(obj)) or "no pass yet"

    @admin.display(description="blockers")
    def blocking(self, obj: Any) -> SafeString | str:
        """Each blocker with its mend, and what its exception said."""
        rows = [
            (
                each.module,
                each.answer,
                each.message,
                each.mend,
                each.detail,
                f"{each.since:%Y-%m-%d %H:%M:%SZ}",
                each.passes,
            )
            for each in _blockers(obj)
        ]
        if not rows:
            return "none"
        body = format_html_join(
            "", "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", rows
        )
        head = (
            "<tr><th>module</th><th>answer</th><th>what</th><th>mend</th><th>detail</th><th>since</th><th>passes</th>"
        )
        return format_html("<table>{}</tr>{}</table>", SafeString(head), body)

    def get_urls(self) -> list[URLPattern]:
        """The verbs' page besides the stock ones."""
        view = self.admin_site.admin_view(self.act_view)
        return [path("act/", view, name="compute_tenancy_act"), *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the way to the verbs."""
        url = reverse("admin:compute_tenancy_act", current_app=self.admin_site.name)
        return super().changelist_view(request, {**(extra_context or {}), "act_url": url})

    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Ask what and why, ask again, and make the call."""
        form = ActForm(request.POST or None, initial={"tenant_id": request.GET.get("tenant", "")})
        confirm = ""
        if request.method == "POST" and form.is_valid():
            wanted = form.cleaned_data
            confirm = _CONSEQUENCE[wanted["verb"]].format(tenant=wanted["tenant_id"])
            if "confirmed" in request.POST:
                try:
                    done = compute.api.tenants[wanted["verb"]](
                        session_principal(request.user),
                        {"tenantId": wanted["tenant_id"], "reason": wanted["reason"]},
                    )
                except ComputeError as error:
                    form.add_error(None, f"{error.message} {error.mend}")
                else:
                    messages.success(request, f"The tenant {done.tenant_id} is {done.state}.")
                    return HttpResponseRedirect(self.list_url())
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            "compute_tenancy/act.html",
            {
                **self.admin_site.each_context(request),
                "title": "Suspend, resume or delete a tenant",
                "opts": self.opts,
                "form": form,
                "confirm": confirm,
                "back_url": self.list_url(),
            },
        )

    # The call opens a transaction of its own, which a host's ATOMIC_REQUESTS must not enclose.
    act_view._non_atomic_requests = ReadOnlyAdmin.changelist_view._non_atomic_requests  # type: ignore[attr-defined]


def _blockers(obj: Any) -> list[Blocker]:
    return msgspec.convert(obj.blockers, list[Blocker])
