"""The operator's page of tenants' states: teardowns with what blocks them, and the verbs, called like over REST."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from better_compute import ComputeError, ReadOnlyAdmin, compute, session_principal

from .blockers import Blocker
from .models import TenantState
from .states import State

_CONSEQUENCE: Final = {
    "suspend": "Every change to {tenant} is refused from now on. What runs goes on running.",
    "resume": "Changes to {tenant} are allowed again.",
    "delete": "Everything of {tenant} is ended by every module. There is no way back.",
}
_TONES: Final[dict[str, Any]] = {
    State.ACTIVE: "good",
    State.SUSPENDED: "warn",
    State.DELETING: "warn",
    State.TORN_DOWN: "quiet",
}
#: Verbs that a state's page offers; which are legal is the envelope's to say.
_OFFERED: Final = {State.ACTIVE: ("suspend", "delete"), State.SUSPENDED: ("resume", "delete")}


class ActForm(forms.Form):
    """A verb for a tenant."""

    tenant_id = forms.CharField(max_length=128, help_text="The tenant's id.")
    verb = forms.ChoiceField(choices=[(verb, verb) for verb in _CONSEQUENCE], help_text="What shall happen to it.")
    reason = forms.CharField(max_length=500, help_text="Why; the tenant is shown it.")


@admin.register(TenantState)
class TenantStateAdmin(ReadOnlyAdmin):
    """Tenants whose state was ever changed, by id; those that the session may not read are not there."""

    change_form_template = "compute_tenancy/change_form.html"
    tenant_column = "tenant_id"
    read_action = "compute:tenants:read"
    list_display = ("tenant_id", "state_mark", "reason_column", "changed", "passes_column", "blocked_by")
    fields = ("tenant_id", "state_mark", "whole_reason", "changed", "passes", "last_pass", "torn_down", "blocking")
    list_filter = (ReadOnlyAdmin.exactly("state"),)
    ordering = ("tenant_id",)
    search_fields = ("tenant_id",)
    search_help_text = "The beginning of a tenant's id"
    empty_text = "No tenant that you may read was ever suspended or deleted, so all of them are active."

    changed = ReadOnlyAdmin.moment("changed_at", "changed")
    last_pass = ReadOnlyAdmin.moment("last_pass_at", "last pass")
    torn_down = ReadOnlyAdmin.moment("teardown_done_at", "torn down")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By the beginning of the id, which the primary key's index gives."""
        term = search_term.strip()
        return (queryset.filter(tenant_id__startswith=term) if term else queryset), False

    @admin.display(description="state")
    def state_mark(self, obj: Any) -> SafeString:
        """The state; one whose teardown a hook refuses or fails is blocked."""
        failing = obj.state == State.DELETING and any(each.answer != "SYNC_AGAIN" for each in _blockers(obj))
        if failing:
            return format_html("{} {}", self.mark("deleting", "warn"), self.mark("blocked", "bad"))
        return self.mark(obj.state.replace("_", " "), _TONES.get(obj.state, "quiet"))

    @admin.display(description="reason")
    def reason_column(self, obj: Any) -> str:
        """Why, cut where it is long."""
        return self.line(obj.reason)

    @admin.display(description="reason")
    def whole_reason(self, obj: Any) -> str:
        """Why, in full."""
        return self.text(obj.reason)

    @admin.display(description="passes")
    def passes_column(self, obj: Any) -> SafeString:
        """Passes of the teardown."""
        return format_html('<span class="compute-figure">{}</span>', obj.passes)

    @admin.display(description="blocked by")
    def blocked_by(self, obj: Any) -> str:
        """The modules that have not let go of it."""
        if obj.state != State.DELETING:
            return "-"
        named = ", ".join(f"{each.module} ({each.answer})" for each in _blockers(obj))
        return self.line(named, 120) or "no pass yet"

    @admin.display(description="blockers")
    def blocking(self, obj: Any) -> SafeString | str:
        """Each blocker with its mend, and what its exception said."""
        blockers = _blockers(obj)
        if not blockers:
            return "none"
        mark, since = self.mark, self.moment("since")
        rows = [
            (
                each.module,
                mark(each.answer, "info" if each.answer == "SYNC_AGAIN" else "bad"),
                self.line(each.message, 2_000),
                self.line(each.mend, 2_000),
                self.text(each.detail) or "-",
                since(self, _Read(each.since, obj.read_at)),
                each.passes,
            )
            for each in blockers
        ]
        body = format_html_join(
            "",
            '<tr><th scope="row">{}</th><td>{}</td><td class="compute-ranges">{}</td><td class="compute-ranges">{}</td>'
            '<td class="compute-error">{}</td><td>{}</td><td class="compute-number">{}</td></tr>',
            rows,
        )
        heads = ("Module", "Answer", "What", "Mend", "Detail", "Since", "Passes")
        head = format_html_join("", '<th scope="col">{}</th>', ((each,) for each in heads))
        return format_html(
            '<div class="compute-scroll" tabindex="0" role="region" aria-label="Blockers"><table class="compute-table">'
            '<caption class="visually-hidden">What blocks the teardown</caption>'
            "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
            head,
            body,
        )

    def get_urls(self) -> list[URLPattern]:
        """The verbs' page besides the stock ones."""
        view = self.admin_site.admin_view(self.act_view)
        return [path("act/", view, name="compute_tenancy_act"), *super().get_urls()]

    @ReadOnlyAdmin.outside_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the way to the verbs."""
        tools = [
            {"url": self.list_url(state=State.DELETING.value), "text": "Being deleted"},
            {"url": self._act_url(), "text": "Suspend, resume or delete a tenant"},
        ]
        return super().changelist_view(request, {"tools": tools, **(extra_context or {})})

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """One tenant, with the verbs that its state allows."""
        obj: Any = context.get("original")
        offered = _OFFERED.get(State(obj.state), ()) if obj else ()
        context["verbs"] = [
            {
                "url": f"{self._act_url()}?{urlencode({'tenant': obj.tenant_id, 'verb': verb})}",
                "text": verb.capitalize(),
            }
            for verb in offered
        ]
        return super().render_change_form(request, context, *args, **kwargs)

    @ReadOnlyAdmin.outside_atomic_requests
    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Ask what and why, ask again, and make the call."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        initial = {"tenant_id": request.GET.get("tenant", ""), "verb": request.GET.get("verb", "")}
        form = ActForm(request.POST or None, initial=initial)
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

    def _act_url(self) -> str:
        return reverse("admin:compute_tenancy_act", current_app=self.admin_site.name)


class _Read(msgspec.Struct):
    """A moment and when it was read, as a column of ages wants them."""

    since: Any
    read_at: Any


def _blockers(obj: Any) -> list[Blocker]:
    return msgspec.convert(obj.blockers, list[Blocker])
