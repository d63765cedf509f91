"""The tokens' page: make one and see its secret once, list them, revoke them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables

from better_compute import conf
from better_compute.access import Token
from better_compute.admin import texts
from better_compute.admin.filters import TenantFilter
from better_compute.admin.read_only import ReadOnlyAdmin, link, mark, moment, outside_atomic_requests
from better_compute.contract.errors import ComputeError
from better_compute.envelope import tokens
from better_compute.envelope.authorize import ANY_TENANT
from better_compute.envelope.identity import session_principal


class TokenForm(forms.Form):
    """What a new token is for. The user is named, not picked: a list of all users may be long.

    Only a superuser may name another user: a token carries that user's permissions.
    """

    user = forms.CharField(max_length=254, help_text="Name of the user in whose name it calls.")
    label = forms.CharField(max_length=128, help_text="What it is for.")
    tenant_id = forms.CharField(
        max_length=128, required=False, help_text="The tenant it acts in. Empty: the installation itself."
    )
    expires_at = forms.DateTimeField(required=False, help_text="YYYY-MM-DD HH:MM. Empty: until it is revoked.")

    def __init__(self, maker: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.maker = maker

    def clean_user(self) -> Any:
        """The user of that name."""
        model = get_user_model()
        name = self.cleaned_data["user"]
        users = model._default_manager.using(conf.current().database)
        found = users.filter(**{model.USERNAME_FIELD: name}).first()
        if found is None:
            raise forms.ValidationError(f"There is no user {name!r}.")
        if found.pk != self.maker.pk and not self.maker.is_superuser:
            raise forms.ValidationError("Only a superuser may make a token in another user's name; enter your own.")
        return found

    def clean_tenant_id(self) -> str:
        """A tenant that the maker may act in: a token must not widen what its maker could do."""
        tenant_id: str = self.cleaned_data["tenant_id"]
        if tenant_id and not self.maker.has_perm(ANY_TENANT):
            raise forms.ValidationError(
                f"Only a user with the permission {ANY_TENANT} may make a token that acts in the tenant {tenant_id!r}."
            )
        return tenant_id


class TokenAdmin(ReadOnlyAdmin):
    """Tokens, newest first. Their rows are written through :mod:`better_compute.envelope.tokens` only."""

    list_display = ("label_column", "hint", "user", "tenant_link", "state", "created", "used")
    fields = ("label_column", "hint", "user", "tenant_link", "state", "created", "used", "expires", "revoked", "id")
    list_filter = (TenantFilter,)
    empty_text = "There is no token yet. Make one for a script or a service that calls the API."
    list_select_related = ("user",)
    ordering = ("-created_at", "-id")

    created = moment("created_at", "created")
    used = moment("last_used_at", "last used")
    expires = moment("expires_at", "expires")
    revoked = moment("revoked_at", "revoked")

    @admin.display(description="label")
    def label_column(self, obj: Token) -> str:
        """What it is for."""
        return texts.line(obj.label, 128)

    @admin.display(description="tenant")
    def tenant_link(self, obj: Token) -> SafeString | str:
        """The tenant, leading to its tokens."""
        return link(self.list_url(tenant=obj.tenant_id), obj.tenant_id) if obj.tenant_id else "the installation"

    @admin.display(description="state")
    def state(self, obj: Any) -> SafeString:
        """Whether calls accept it."""
        if obj.revoked_at is not None:
            return mark("revoked")
        expired = obj.expires_at is not None and obj.expires_at <= obj.read_at
        return mark("expired") if expired else mark("live", "good")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Django's own permission."""
        return bool(request.user.has_perm("compute.add_token"))

    def may_revoke(self, request: HttpRequest) -> bool:
        """Django's permission to change one."""
        return bool(request.user.has_perm("compute.change_token"))

    def get_urls(self) -> list[URLPattern]:
        """The revoke page besides the stock ones."""
        view = self.admin_site.admin_view(self.revoke_view)
        return [path("<path:object_id>/revoke/", view, name="compute_token_revoke"), *super().get_urls()]

    @outside_atomic_requests
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """One token, with a way to revoke it; without an id, the page that makes one."""
        if object_id is None:
            return self._create_view(request)
        context = {**(extra_context or {}), "may_revoke": self.may_revoke(request)}
        return super().changeform_view(request, object_id, form_url, context)

    @sensitive_variables("secret")
    def _create_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request.user, request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                secret, token = tokens.create(
                    user=form.cleaned_data["user"],
                    label=form.cleaned_data["label"],
                    tenant_id=form.cleaned_data["tenant_id"] or None,
                    expires_at=form.cleaned_data["expires_at"],
                    by=session_principal(request.user).id,
                )
            except ComputeError as error:
                form.add_error(None, f"{error.message} {error.mend}")
            else:
                # Answered instead of redirected to: the secret must not travel through a session or a cookie.
                return never_cache(
                    lambda _: self._page(request, "compute/token_made.html", secret=secret, token=token)
                )(request)
        return self._page(request, "compute/form.html", form=form, submit="Make the token")

    @outside_atomic_requests
    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then revoke; POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.may_revoke(request):
            raise PermissionDenied
        token = self.get_object(request, unquote(object_id))
        if token is None:
            messages.error(request, "There is no such token.")
        elif "confirmed" not in request.POST:
            return self._page(request, "compute/token_revoke.html", token=token)
        else:
            tokens.revoke(token.pk, by=session_principal(request.user).id)
            messages.success(request, f"Revoked {token}.")
        return HttpResponseRedirect(self.list_url())

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        titles = {"compute/form.html": "Make a token", "compute/token_made.html": "Token made"}
        return TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "title": titles.get(template, "Revoke token"),
                "opts": self.opts,
                "back_url": self.list_url(),
                **context,
            },
        )
