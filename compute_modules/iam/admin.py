"""The operator's pages of who may do what. Every act is a call through the envelope, judged like one over REST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import Func, QuerySet, TextField, Value
from django.db.models.functions import Cast, Collate
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables

from better_compute import ComputeError, ReadOnlyAdmin, compute, session_principal

from .models import GrantRow, ScopedToken, TenantNode
from .states import state_of


def _outside_atomic(view: Any) -> Any:
    """A call opens a transaction of its own, which a host's ATOMIC_REQUESTS must not enclose."""
    view._non_atomic_requests = ReadOnlyAdmin.changelist_view._non_atomic_requests  # type: ignore[attr-defined]
    return view


class Page(ReadOnlyAdmin):
    """A read-only page with forms of its own beside it."""

    change_list_template = "compute_iam/change_list.html"
    change_form_template = "compute_iam/change_form.html"
    #: (name of the URL, text) of what can be done from the list.
    tools: Sequence[tuple[str, str]] = ()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the ways to what can be done."""
        tools = [{"url": self.url(name), "text": text} for name, text in self.tools]
        return super().changelist_view(request, {**(extra_context or {}), "tools": tools})

    def url(self, name: str, *args: Any) -> str:
        """Address of one of this app's own views."""
        return reverse(f"admin:compute_iam_{name}", args=args, current_app=self.admin_site.name)

    def form_page(
        self, request: HttpRequest, form: forms.Form, title: str, submit: str, *, method: str = "post", **more: Any
    ) -> HttpResponse:
        """The form, and whatever came of it."""
        return self._page(request, "form.html", title=title, form=form, submit=submit, method=method, **more)

    def _page(self, request: HttpRequest, template: str, **more: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "back_url": self.list_url()}
        return TemplateResponse(request, f"compute_iam/{template}", {**shared, **more})

    def end(self, request: HttpRequest, call: Callable[[], Any], done: str) -> HttpResponse:
        """Make a call that ends something; POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            call()
        except ComputeError as error:
            messages.error(request, f"{error.message} {error.mend}")
        else:
            messages.success(request, done)
        return HttpResponseRedirect(self.list_url())


@admin.register(TenantNode)
class TenantAdmin(Page):
    """The tree of tenants, with the state of each and how far a teardown is."""

    list_display = ("place", "kind", "name", "progress")
    fields = ("id", "kind", "name", "path", "ceiling", "created_at", "progress")
    ordering = ("path_text",)
    search_fields = ("^id",)
    search_help_text = "The beginning of a tenant's id"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Each tenant right after those above it."""
        rows: QuerySet[Any] = (
            super()
            .get_queryset(request)
            .annotate(
                # Without its closing bracket a path begins those of the tenants below it, and so sorts before them.
                path_text=Collate(
                    Func(Cast("path", TextField()), Value(-1), function="LEFT", output_field=TextField()), "C"
                )
            )
        )
        return rows

    @admin.display(description="tenant")
    def place(self, obj: Any) -> SafeString:
        """The id, as far in as the tenant stands deep."""
        return format_html("{}{}", "\N{EM SPACE}" * (obj.depth - 1), obj.id)

    @admin.display(description="state")
    def progress(self, obj: Any) -> str:
        """The state; of one that is being deleted, which modules have not let go of it."""
        ctx = compute.context("iam")
        state: str = ctx.tenants.state(obj.id)
        if state != "deleting":
            return state
        return f"{state}, blocked by {', '.join(ctx.tenants.blocked_by(obj.id)) or 'nobody yet'}"


class WhyForm(forms.Form):
    """A question."""

    tenant = forms.CharField(max_length=128, help_text="In which tenant.")
    principal = forms.CharField(
        max_length=255, help_text="Who: user/<pk>, service/<name> or external/<provider>/<subject>."
    )
    action = forms.CharField(max_length=140, help_text="What: compute:<area>:<verb>.")


class BrokenGlassFilter(admin.SimpleListFilter):
    """Only what was made by breaking the glass."""

    title = "break-glass log"
    parameter_name = "broken"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """One choice."""
        return [("yes", "Break-glass only")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter."""
        return queryset.filter(break_glass=True) if self.value() == "yes" else queryset


@admin.register(GrantRow)
class GrantAdmin(Page):
    """Who has what, newest first, ended ones included; and why somebody may do something."""

    tools = (("why", "Why can this principal do this?"),)
    list_display = ("principal_id", "effect", "what", "where", "state", "expires_at", "reason")
    fields = (
        "principal_id",
        "effect",
        "what",
        "where",
        "state",
        "starts_at",
        "expires_at",
        "reason",
        "break_glass",
        "created_at",
        "created_by",
        "revoked_at",
        "revoked_by",
        "id",
    )
    list_filter = (BrokenGlassFilter,)
    ordering = ("-created_at",)
    search_fields = ("^principal_id", "^tenant_id")
    search_help_text = "The beginning of a principal or a tenant"

    @admin.display(description="role or actions")
    def what(self, obj: Any) -> str:
        """What it conveys."""
        return obj.role or ", ".join(obj.patterns)

    @admin.display(description="where")
    def where(self, obj: Any) -> str:
        """The tenant, and how far it reaches."""
        if obj.resource_type:
            return f"{obj.resource_type} {obj.resource_id} of {obj.tenant_id}"
        return f"{obj.tenant_id} and below" if obj.inherit or obj.effect == "forbid" else obj.tenant_id

    @admin.display(description="state")
    def state(self, obj: Any) -> str:
        """By the database's clock."""
        return _state(obj, obj.starts_at)

    def get_urls(self) -> list[URLPattern]:
        """The question, and the end of a grant."""
        view = self.admin_site.admin_view
        return [
            path("why/", view(self.why_view), name="compute_iam_why"),
            path("<path:object_id>/end/", view(self.end_view), name="compute_iam_end_grant"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One grant, with the way to take it back."""
        more = {"end_url": self.url("end_grant", object_id), "end_text": "Revoke"}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})

    @_outside_atomic
    def why_view(self, request: HttpRequest) -> HttpResponse:
        """Ask iam.explain."""
        form, explained = WhyForm(request.GET or None), None
        if form.is_bound and form.is_valid():
            asked = form.cleaned_data
            try:
                explained = compute.api.iam.explain(
                    session_principal(request.user),
                    {"tenantId": asked["tenant"], "principal": asked["principal"], "action": asked["action"]},
                )
            except ComputeError as error:
                form.add_error(None, f"{error.message} {error.mend}")
        title = "Why can this principal do this?"
        return self.form_page(request, form, title, "Tell me", method="get", explained=explained)

    @_outside_atomic
    def end_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Revoke it through grants.revoke."""
        ask = {"grantId": unquote(object_id)}
        principal = session_principal(request.user)
        return self.end(request, lambda: compute.api.grants.revoke(principal, ask), "Revoked the grant.")


class TokenForm(forms.Form):
    """What a new token is for and what it is narrowed to."""

    tenant = forms.CharField(max_length=128, help_text="The tenant it belongs to and acts in, with those below.")
    label = forms.CharField(max_length=128, help_text="What it is for.")
    principal = forms.CharField(max_length=255, required=False, help_text="service/<name>. Empty: yourself.")
    actions = forms.CharField(
        required=False, help_text="Patterns such as compute:acme:*, by spaces. Empty: all you may."
    )
    expires_at = forms.DateTimeField(required=False, help_text="YYYY-MM-DD HH:MM. Empty: until it is revoked.")

    def call(self) -> dict[str, Any]:
        """The input of tokens.create."""
        wanted = self.cleaned_data
        ask = {"tenantId": wanted["tenant"], "label": wanted["label"], "expiresAt": wanted["expires_at"]}
        if wanted["principal"]:
            ask["principal"] = wanted["principal"]
        if wanted["actions"]:
            ask["actions"] = wanted["actions"].split()
        return ask


@admin.register(ScopedToken)
class ScopedTokenAdmin(Page):
    """Scoped tokens, newest first; a new one's secret is shown once."""

    tools = (("new_token", "Make a token"),)
    list_display = ("label", "hint", "principal_id", "home_tenant_id", "narrowed", "state", "last_used_at")
    fields = (
        "label",
        "hint",
        "principal_id",
        "home_tenant_id",
        "narrowed",
        "state",
        "created_at",
        "created_by",
        "expires_at",
        "revoked_at",
        "last_used_at",
        "replaced_by",
        "id",
    )
    ordering = ("-created_at",)
    search_fields = ("^principal_id", "^home_tenant_id")
    search_help_text = "The beginning of a principal or a tenant"

    @admin.display(description="narrowed to")
    def narrowed(self, obj: Any) -> str:
        """Where it acts and what it may do."""
        return f"{', '.join(obj.actions) if obj.actions else 'all'} in {obj.tenant_id or 'every tenant'}"

    @admin.display(description="state")
    def state(self, obj: Any) -> str:
        """By the database's clock."""
        return _state(obj, None)

    def get_urls(self) -> list[URLPattern]:
        """The form, and the end of a token."""
        view = self.admin_site.admin_view
        return [
            path("new/", view(self.new_view), name="compute_iam_new_token"),
            path("<path:object_id>/end/", view(self.end_view), name="compute_iam_end_token"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One token, with the way to revoke it."""
        more = {"end_url": self.url("end_token", object_id), "end_text": "Revoke"}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})

    @_outside_atomic
    @sensitive_variables("made")
    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Call tokens.create and show the secret."""
        form = TokenForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                made = compute.api.tokens.create(session_principal(request.user), form.call())
            except ComputeError as error:
                form.add_error(None, f"{error.message} {error.mend}")
            else:
                # Answered instead of redirected to: the secret must not travel through a session or a cookie.
                return never_cache(
                    lambda _: self._page(
                        request, "token_made.html", title="Token made", secret=made.secret, token=made.token
                    )
                )(request)
        return self.form_page(request, form, "Make a token", "Make the token")

    @_outside_atomic
    def end_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Revoke it through tokens.revoke."""
        ask = {"tokenId": unquote(object_id)}
        principal = session_principal(request.user)
        return self.end(request, lambda: compute.api.tokens.revoke(principal, ask), "Revoked the token.")


def _state(obj: Any, starts_at: Any) -> str:
    return state_of(obj.read_at, starts_at=starts_at, expires_at=obj.expires_at, revoked_at=obj.revoked_at).value
