"""Requeue now: asked first, then called through the same method as over REST, once for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse

from better_compute.contract.errors import ComputeError
from better_compute.envelope.api import Api
from better_compute.envelope.identity import session_principal

if TYPE_CHECKING:
    from better_compute.admin.read_only import ReadOnlyAdmin

#: Refusals shown one by one; the rest are counted.
_SHOWN_REFUSALS = 5


def token_of(kind: str, key: str) -> str:
    """Kind and key in one string; a kind holds no colon."""
    return f"{kind}:{key}"


def pair_of(token: str) -> tuple[str, str] | None:
    """Kind and key of a token; None when it is none."""
    kind, colon, key = token.partition(":")
    return (kind, key) if kind and colon and key and "\x00" not in token else None


def _chosen(request: HttpRequest) -> list[tuple[str, str]]:
    tokens = dict.fromkeys(request.POST.getlist(ACTION_CHECKBOX_NAME))
    return [pair for pair in map(pair_of, tokens) if pair]


def ask(page: ReadOnlyAdmin, request: HttpRequest) -> HttpResponse:
    """Show what would be requeued and ask."""
    chosen = _chosen(request)
    context = {
        **page.admin_site.each_context(request),
        "title": "Requeue now",
        "opts": page.opts,
        "chosen": [(kind, key, token_of(kind, key)) for kind, key in chosen],
        "checkbox_name": ACTION_CHECKBOX_NAME,
        "back_url": page.list_url(),
    }
    request.current_app = page.admin_site.name
    return TemplateResponse(request, "compute/requeue.html", context)


def view(page: ReadOnlyAdmin, request: HttpRequest) -> HttpResponse:
    """Ask, or requeue what was confirmed and go back to the list; any method but POST is refused."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not page.has_view_permission(request):
        raise PermissionDenied
    if "confirmed" not in request.POST:
        return ask(page, request)
    _requeue(request, _chosen(request))
    return HttpResponseRedirect(page.list_url())


def _requeue(request: HttpRequest, chosen: list[tuple[str, str]]) -> None:
    principal = session_principal(request.user)
    done = 0
    refusals: list[str] = []
    for kind, key in chosen:
        try:
            Api().work.requeue(principal, {"kind": kind, "key": key})
            done += 1
        except ComputeError as error:
            refusals.append(f"{token_of(kind, key)[:120]}: {error}")
    if done:
        messages.success(request, f"Requeued {done} {'key' if done == 1 else 'keys'}.")
    for refusal in refusals[:_SHOWN_REFUSALS]:
        messages.error(request, refusal)
    if len(refusals) > _SHOWN_REFUSALS:
        messages.error(request, f"{len(refusals) - _SHOWN_REFUSALS} more were refused.")
    if not chosen:
        messages.warning(request, "Tick at least one key before requeueing.")
