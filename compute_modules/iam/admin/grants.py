"""Who has what, why somebody may do something, and the log of broken glass."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from better_compute import ComputeError, ReadOnlyAdmin, compute, session_principal
from compute_modules.iam.models import GrantRow

from . import why
from .held import Held
from .page import cut


class BrokenGlassFilter(admin.SimpleListFilter):
    """Only what was made by breaking the glass."""

    title = "break-glass log"
    parameter_name = "broken"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The one that a link chooses."""
        return [("yes", "Break-glass only")] if request.GET.get("broken") else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter."""
        return queryset.filter(break_glass=True) if self.value() == "yes" else queryset


class GrantForm(forms.Form):
    """A grant."""

    tenant = forms.CharField(max_length=128, help_text="In which tenant.")
    principal = forms.CharField(
        max_length=255, help_text="Who: user/<pk>, service/<name> or external/<provider>/<subject>."
    )
    effect = forms.ChoiceField(
        choices=[("permit", "permit"), ("forbid", "forbid")], help_text="A forbid beats permits."
    )
    role = forms.CharField(max_length=255, required=False, help_text="A role, e.g. viewer; or leave it empty and name:")
    actions = forms.CharField(required=False, help_text="Patterns such as compute:acme:*, by spaces.")
    inherit = forms.BooleanField(required=False, label="And below", help_text="It holds in the tenants below too.")
    expires_at = forms.DateTimeField(required=False, help_text="YYYY-MM-DD HH:MM. Empty: until it is revoked.")
    reason = forms.CharField(max_length=500, required=False, help_text="For whoever reviews it.")

    def ask(self) -> dict[str, Any]:
        """The input of grants.create."""
        wanted = self.cleaned_data
        return {
            "tenantId": wanted["tenant"],
            "principal": wanted["principal"],
            "effect": wanted["effect"],
            "role": wanted["role"] or None,
            "actions": wanted["actions"].split() or None,
            "inherit": wanted["inherit"],
            "expiresAt": wanted["expires_at"],
            "reason": wanted["reason"],
        }


class BreakGlassForm(forms.Form):
    """An emergency."""

    tenant = forms.CharField(max_length=128, help_text="Where you need everything.")
    reason = forms.CharField(max_length=500, help_text="Why; it is told to everybody who watches the tenant.")
    minutes = forms.IntegerField(min_value=1, max_value=1_440, initial=30, help_text="For how long.")

    def ask(self) -> dict[str, Any]:
        """The input of breakGlass.activate."""
        wanted = self.cleaned_data
        return {"tenantId": wanted["tenant"], "reason": wanted["reason"], "minutes": wanted["minutes"]}


@admin.register(GrantRow)
class GrantAdmin(Held):
    """Who has what, what changed last first, ended ones included; and why somebody may do something."""

    tenant_column = "tenant_id"
    tools = (
        ("why", "Why can this principal do this?"),
        ("new_grant", "Grant something"),
        ("break_glass", "Break the glass"),
    )
    list_display = ("principal_column", "effect_mark", "what", "where", "state", "until", "why_given")
    fields = (
        "principal_id",
        "effect_mark",
        "what",
        "where",
        "state",
        "starts",
        "until",
        "whole_reason",
        "glass",
        "given",
        "created_by",
        "revoked",
        "revoked_by",
        "id",
    )
    list_filter = (BrokenGlassFilter, ReadOnlyAdmin.exactly("tenant_id", "tenant", "tenant"))
    # The version rises with every change and has an index.
    ordering = ("-version",)

    starts = ReadOnlyAdmin.moment("starts_at", "from")
    given = ReadOnlyAdmin.moment("created_at", "given")

    @admin.display(description="effect")
    def effect_mark(self, obj: Any) -> SafeString:
        """Permit or forbid, and whether the glass was broken for it."""
        shown = self.mark(obj.effect, "good" if obj.effect == "permit" else "bad")
        return format_html("{} {}", shown, self.mark("break-glass", "warn")) if obj.break_glass else shown

    @admin.display(description="role or actions")
    def what(self, obj: Any) -> str:
        """What it conveys."""
        return cut(obj.role or ", ".join(obj.patterns))

    @admin.display(description="where")
    def where(self, obj: Any) -> str:
        """The tenant, and how far it reaches."""
        if obj.resource_type:
            return f"{obj.resource_type} {cut(obj.resource_id)} of {obj.tenant_id}"
        return f"{obj.tenant_id} and below" if obj.inherit or obj.effect == "forbid" else str(obj.tenant_id)

    @admin.display(description="reason")
    def why_given(self, obj: Any) -> str:
        """Why it was given."""
        return cut(obj.reason) or "-"

    @admin.display(description="reason")
    def whole_reason(self, obj: Any) -> str:
        """Why it was given, in full."""
        return self.text(obj.reason) or "-"

    @admin.display(description="break-glass")
    def glass(self, obj: Any) -> str:
        """Whether the glass was broken for it."""
        return "yes" if obj.break_glass else "no"

    def get_urls(self) -> list[URLPattern]:
        """The question, and the acts."""
        view = self.admin_site.admin_view
        return [
            path("why/", view(self.why_view), name="compute_iam_why"),
            path("new/", view(self.new_view), name="compute_iam_new_grant"),
            path("break-glass/", view(self.break_glass_view), name="compute_iam_break_glass"),
            path("<path:object_id>/end/", view(self.end_view), name="compute_iam_end_grant"),
            *super().get_urls(),
        ]

    @ReadOnlyAdmin.outside_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the way to the log of broken glass."""
        log = {"url": self.list_url(broken="yes"), "text": "Break-glass log"}
        tools = [{"url": self.url(name), "text": text} for name, text in self.tools]
        return super().changelist_view(request, {"tools": [log, *tools], **(extra_context or {})})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One grant, with the way to take it back."""
        more = {"end_url": self.url("end_grant", object_id), "end_text": "Revoke"}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})

    @ReadOnlyAdmin.outside_atomic_requests
    def why_view(self, request: HttpRequest) -> HttpResponse:
        """Ask iam.explain and draw its answer."""
        self.require_view(request)
        asked = any(name in request.GET for name in why.WhyForm.base_fields)
        form, picture = why.WhyForm(request.GET if asked else None), None
        if asked and form.is_valid():
            try:
                answer = compute.api.iam.explain(session_principal(request.user), form.ask())
                picture = why.picture(answer, form.cleaned_data)
            except ComputeError as error:
                form.add_error(None, f"{error.message} {error.mend}")
        title = "Why can this principal do this?"
        return self.page(request, "form.html", title=title, form=form, submit="Tell me", method="get", picture=picture)

    @ReadOnlyAdmin.outside_atomic_requests
    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Call grants.create."""
        form = GrantForm(request.POST or None, initial={"tenant": request.GET.get("tenant", "")})
        return self.act(
            request,
            form,
            lambda principal: compute.api.grants.create(principal, form.ask()),
            title="Grant something",
            submit="Grant it",
            done=lambda made: f"Gave {made.principal} a {made.effect} in {made.tenant_id}.",
        )

    @ReadOnlyAdmin.outside_atomic_requests
    def break_glass_view(self, request: HttpRequest) -> HttpResponse:
        """Call breakGlass.activate."""
        form = BreakGlassForm(request.POST or None, initial={"tenant": request.GET.get("tenant", ""), "minutes": 30})
        return self.act(
            request,
            form,
            lambda principal: compute.api.break_glass.activate(principal, form.ask()),
            title="Break the glass",
            submit="Break the glass",
            said="You become an owner of the tenant and all below it for a while. Whoever watches it is told at once.",
            done=lambda made: f"You may do everything in {made.tenant_id} until {made.expires_at:%H:%M:%S} UTC.",
        )

    @ReadOnlyAdmin.outside_atomic_requests
    def end_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then revoke it through grants.revoke; broken glass ends through breakGlass.end."""
        id = unquote(object_id)
        glass = GrantRow.objects.filter(pk=id, break_glass=True).exists() if _is_uuid(id) else False
        return self.end(
            request,
            lambda principal: (compute.api.break_glass.end if glass else compute.api.grants.revoke)(
                principal, {"grantId": id}
            ),
            title="Revoke grant",
            said="Whoever has it loses it with the next request. This cannot be taken back; grant it anew instead.",
            done="Revoked the grant.",
        )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
