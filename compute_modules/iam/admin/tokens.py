"""Scoped tokens. A secret is shown once, on the page that answers the call that made it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables

from better_compute import ReadOnlyAdmin, compute
from compute_modules.iam.models import ScopedToken

from .held import Held
from .page import cut


class TokenForm(forms.Form):
    """What a new token is for and what it is narrowed to."""

    tenant = forms.CharField(max_length=128, help_text="The tenant it belongs to and acts in, with those below.")
    label = forms.CharField(max_length=128, help_text="What it is for.")
    principal = forms.CharField(max_length=255, required=False, help_text="service/<name>. Empty: yourself.")
    actions = forms.CharField(
        required=False, help_text="Patterns such as compute:acme:*, by spaces. Empty: all you may."
    )
    expires_at = forms.DateTimeField(required=False, help_text="YYYY-MM-DD HH:MM. Empty: until it is revoked.")

    def ask(self) -> dict[str, Any]:
        """The input of tokens.create."""
        wanted = self.cleaned_data
        ask = {"tenantId": wanted["tenant"], "label": wanted["label"], "expiresAt": wanted["expires_at"]}
        if wanted["principal"]:
            ask["principal"] = wanted["principal"]
        if wanted["actions"]:
            ask["actions"] = wanted["actions"].split()
        return ask


class RotateForm(forms.Form):
    """How long the old secret stays good."""

    grace = forms.IntegerField(
        label="Grace",
        min_value=0,
        max_value=86_400,
        initial=0,
        help_text="Seconds for which the old secret stays good.",
    )


@admin.register(ScopedToken)
class ScopedTokenAdmin(Held):
    """Scoped tokens, newest first; a new one's secret is shown once."""

    tenant_column = "home_tenant_id"
    tools = (("new_token", "Make a token"),)
    list_display = ("label_column", "hint", "principal_column", "home_tenant_id", "narrowed", "state", "used", "until")
    fields = (
        "label_column",
        "hint",
        "principal_id",
        "home_tenant_id",
        "narrowed",
        "state",
        "created",
        "created_by",
        "until",
        "revoked",
        "used",
        "replaced_by",
        "id",
    )
    list_filter = (ReadOnlyAdmin.exactly("home_tenant_id", "tenant", "tenant"),)
    ordering = ("-created_at",)

    created = ReadOnlyAdmin.moment("created_at", "made")
    used = ReadOnlyAdmin.moment("last_used_at", "last used")

    @admin.display(description="label")
    def label_column(self, obj: Any) -> str:
        """What it is for."""
        return cut(obj.label)

    @admin.display(description="narrowed to")
    def narrowed(self, obj: Any) -> str:
        """Where it acts and what it may do."""
        return f"{cut(', '.join(obj.actions)) if obj.actions else 'all'} in {obj.tenant_id or 'every tenant'}"

    def get_urls(self) -> list[URLPattern]:
        """The form, and the acts on a token."""
        view = self.admin_site.admin_view
        return [
            path("new/", view(self.new_view), name="compute_iam_new_token"),
            path("<path:object_id>/rotate/", view(self.rotate_view), name="compute_iam_rotate_token"),
            path("<path:object_id>/end/", view(self.end_view), name="compute_iam_end_token"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One token, with the ways to rotate and to revoke it."""
        more = {
            "end_url": self.url("end_token", object_id),
            "end_text": "Revoke",
            "verbs": [{"url": self.url("rotate_token", object_id), "text": "Rotate"}],
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **more})

    @ReadOnlyAdmin.outside_atomic_requests
    @sensitive_variables("made")
    def new_view(self, request: HttpRequest) -> HttpResponse:
        """Call tokens.create and show the secret."""
        form = TokenForm(request.POST or None, initial={"tenant": request.GET.get("tenant", "")})
        return self.act(
            request,
            form,
            lambda principal: compute.api.tokens.create(principal, form.ask()),
            title="Make a token",
            submit="Make the token",
            done=lambda made: self._made(request, made),
        )

    @ReadOnlyAdmin.outside_atomic_requests
    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Call tokens.rotate and show the new secret."""
        form = RotateForm(request.POST or None, initial={"grace": 0})
        id = unquote(object_id)
        return self.act(
            request,
            form,
            lambda principal: compute.api.tokens.rotate(
                principal, {"tokenId": id, "graceSeconds": form.cleaned_data["grace"]}
            ),
            title="Rotate token",
            submit="Rotate it",
            said="A new secret takes the old one's place, with the same rights.",
            done=lambda made: self._made(request, made),
        )

    @sensitive_variables("made")
    def _made(self, request: HttpRequest, made: Any) -> HttpResponse:
        # Answered instead of redirected to: the secret must not travel through a session or a cookie.
        def answer(_: HttpRequest) -> HttpResponse:
            return self.page(request, "token_made.html", title="Token made", secret=made.secret, token=made.token)

        return never_cache(answer)(request)

    @ReadOnlyAdmin.outside_atomic_requests
    def end_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then revoke it through tokens.revoke."""
        ask = {"tokenId": unquote(object_id)}
        return self.end(
            request,
            lambda principal: compute.api.tokens.revoke(principal, ask),
            title="Revoke token",
            said="Every call with it is refused from the next one on. This cannot be taken back.",
            done="Revoked the token.",
        )
