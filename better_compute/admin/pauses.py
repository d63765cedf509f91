"""What is paused, and the two acts: pause, which asks why, and resume. Both are calls through the envelope."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from better_compute import conf
from better_compute.admin import texts
from better_compute.admin.filters import hosted_kinds
from better_compute.admin.read_only import ReadOnlyAdmin, moment, outside_atomic_requests
from better_compute.contract.errors import ComputeError
from better_compute.envelope.api import Api
from better_compute.envelope.identity import session_principal
from better_compute.models import Pause
from better_compute.store.members import live_members

_WORDS = {"kind": "reconciler", "member": "worker"}


def words(scope: str) -> str:
    """A scope as an operator says it."""
    what, _, name = scope.partition(":")
    return texts.line(f"{_WORDS.get(what, what)} {name}", 128)


def _asked(scope: str) -> dict[str, str]:
    what, _, name = scope.partition(":")
    return {"kind": name} if what == "kind" else {"member": name}


class PauseForm(forms.Form):
    """What to pause, among what is hosted and lives, and why."""

    scope = forms.ChoiceField(label="Pause", help_text="A reconciler everywhere, or one worker with all it runs.")
    reason = forms.CharField(max_length=500, help_text="For whoever finds it paused: the incident, and who is on it.")

    def __init__(self, scopes: list[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scope"].choices = [(scope, words(scope)) for scope in scopes]  # type: ignore[attr-defined]


class PauseAdmin(ReadOnlyAdmin):
    """Paused reconcilers and workers, by name."""

    change_list_template = "compute/pauses.html"
    list_display = ("what", "reason_column", "since", "by", "act")
    list_display_links = None
    fields = ("what", "reason_column", "since", "by")
    ordering = ("scope",)
    empty_text = "Nothing is paused. While an incident lasts, pause a reconciler or a worker; keys wait in the queue."

    since = moment("paused_at", "since")

    @admin.display(description="paused")
    def what(self, obj: Pause) -> str:
        """The reconciler or the worker."""
        return words(obj.scope)

    @admin.display(description="reason")
    def reason_column(self, obj: Pause) -> str:
        """Why."""
        return texts.line(obj.reason, 500)

    @admin.display(description="paused by")
    def by(self, obj: Pause) -> str:
        """Who paused it."""
        return texts.line(obj.paused_by)

    @admin.display(description="")
    def act(self, obj: Pause) -> SafeString:
        """Ends it; the button belongs to a form of its own that stands outside the list's."""
        return format_html(
            '<button type="submit" form="compute-resume" name="scope" value="{}" class="compute-act" '
            'aria-label="Resume {}">Resume</button>',
            obj.scope,
            words(obj.scope),
        )

    def get_urls(self) -> list[URLPattern]:
        """The two acts besides the stock pages."""
        view = self.admin_site.admin_view
        return [
            path("new/", view(self.pause_view), name="compute_pause_new"),
            path("resume/", view(self.resume_view), name="compute_pause_resume"),
            *super().get_urls(),
        ]

    @outside_atomic_requests
    def pause_view(self, request: HttpRequest) -> HttpResponse:
        """Ask what and why, then call ``work.pause``."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.POST.get("scope") or request.GET.get("scope", "")
        form = PauseForm(_scopes(chosen), request.POST or None, initial={"scope": chosen})
        if request.method == "POST" and form.is_valid():
            scope, reason = form.cleaned_data["scope"], form.cleaned_data["reason"]
            try:
                Api().work.pause(session_principal(request.user), {**_asked(scope), "reason": reason})
            except ComputeError as error:
                form.add_error(None, f"{error.message} {error.mend}")
            else:
                messages.success(request, f"The {words(scope)} is paused; its keys wait in the queue.")
                return HttpResponseRedirect(self.list_url())
        context = {
            **self.admin_site.each_context(request),
            "title": "Pause",
            "opts": self.opts,
            "form": form,
            "submit": "Pause",
            "back_url": self.list_url(),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "compute/form.html", context)

    @outside_atomic_requests
    def resume_view(self, request: HttpRequest) -> HttpResponse:
        """Call ``work.resume``; POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        scope = request.POST.get("scope", "")
        try:
            Api().work.resume(session_principal(request.user), _asked(scope))
        except ComputeError as error:
            messages.error(request, f"{error.message} {error.mend}")
        else:
            messages.success(request, f"The {words(scope)} goes on.")
        return HttpResponseRedirect(self.list_url())

    @outside_atomic_requests
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, with the way to pause something."""
        site = self.admin_site.name
        more = {
            "new_url": reverse("admin:compute_pause_new", current_app=site),
            "resume_url": reverse("admin:compute_pause_resume", current_app=site),
        }
        return super().changelist_view(request, {**more, **(extra_context or {})})


def _scopes(chosen: str) -> list[str]:
    """What may be paused, and what was asked for, so that a refusal is the envelope's."""
    with connections[conf.current().database].cursor() as cursor:
        members = [member.id for member in live_members(cursor)]
    scopes = [f"kind:{kind}" for kind in hosted_kinds()] + [f"member:{member}" for member in members]
    return [*scopes, chosen] if chosen and chosen not in scopes else scopes
