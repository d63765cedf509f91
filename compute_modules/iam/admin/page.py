"""The base of this module's pages: a list that only reads, with forms beside it that make calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from better_compute import ComputeError, ReadOnlyAdmin, session_principal
from compute_modules.iam.states import State, state_of

_TONES: Final[dict[State, Any]] = {State.ACTIVE: "good", State.PENDING: "info"}


class Page(ReadOnlyAdmin):
    """A list of rows that belong to tenants."""

    change_form_template = "compute_iam/change_form.html"
    read_action = "compute:iam:read"
    empty_text = "Nothing here that you may read: it takes compute:iam:read in a tenant that has some."
    #: (name of the URL, text) of what can be done from the list.
    tools: Sequence[tuple[str, str]] = ()

    @ReadOnlyAdmin.outside_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the ways to what can be done."""
        tools = [{"url": self.url(name), "text": text} for name, text in self.tools]
        return super().changelist_view(request, {"tools": tools, **(extra_context or {})})

    def url(self, name: str, *args: Any, **query: str) -> str:
        """Address of one of this app's own views."""
        url = reverse(f"admin:compute_iam_{name}", args=args, current_app=self.admin_site.name)
        return f"{url}?{urlencode(query)}" if query else url

    def page(self, request: HttpRequest, template: str, **more: Any) -> HttpResponse:
        """A page of this app."""
        request.current_app = self.admin_site.name
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "back_url": self.list_url()}
        return TemplateResponse(request, f"compute_iam/{template}", {**shared, **more})

    def act(
        self,
        request: HttpRequest,
        form: forms.Form,
        call: Callable[[Any], Any],
        *,
        title: str,
        submit: str,
        done: Callable[[Any], HttpResponse | str],
        said: str = "",
    ) -> HttpResponse:
        """Ask with ``form``, then make the call; a refusal is shown in the form, with its mend.

        ``call`` is given the session's principal. ``done`` makes of its answer the response, or what the list says.
        """
        self.require_view(request)
        if request.method == "POST" and form.is_valid():
            try:
                answer = call(session_principal(request.user))
            except ComputeError as error:
                form.add_error(None, f"{error.message} {error.mend}")
            else:
                response = done(answer)
                if not isinstance(response, str):
                    return response
                messages.success(request, response)
                return HttpResponseRedirect(self.list_url())
        return self.page(request, "form.html", title=title, form=form, submit=submit, said=said, method="post")

    def end(
        self, request: HttpRequest, call: Callable[[Any], Any], *, title: str, said: str, done: str
    ) -> HttpResponse:
        """Ask before a call that ends something, then make it; POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self.require_view(request)
        if "confirmed" not in request.POST:
            return self.page(request, "confirm.html", title=title, said=said)
        try:
            call(session_principal(request.user))
        except ComputeError as error:
            messages.error(request, f"{error.message} {error.mend}")
        else:
            messages.success(request, done)
        return HttpResponseRedirect(self.list_url())

    def require_view(self, request: HttpRequest) -> None:
        """Refuse a session that may not see these pages at all."""
        if not self.has_view_permission(request):
            raise PermissionDenied


def cut(text: str) -> str:
    """The text, cut where it is too long for a cell."""
    return ReadOnlyAdmin.line(text)


def state_mark(obj: Any, starts_at: Any) -> Any:
    """The state of a grant or a token by the database's clock, as a badge."""
    state = state_of(obj.read_at, starts_at=starts_at, expires_at=obj.expires_at, revoked_at=obj.revoked_at)
    return ReadOnlyAdmin.mark(state.value, _TONES.get(state, "quiet"))
