"""Addresses and ages for the templates of the operator's pages."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.contrib.admin.utils import quote
from django.template import Context
from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from better_compute.admin import ages, charts, texts
from better_compute.admin.requeue import token_of

register = template.Library()


def _url(context: Context, name: str, *args: Any) -> str:
    request = context["request"]
    try:
        return reverse(f"admin:compute_{name}", args=args, current_app=getattr(request, "current_app", None))
    except NoReverseMatch:
        # The host did not register this page; a dead link is worse than none, an error worse than both.
        return ""


@register.simple_tag(takes_context=True)
def compute_list(context: Context, model_name: str, **query: object) -> str:
    """Address of a page's list, filtered."""
    url = _url(context, f"{model_name}_changelist")
    return f"{url}?{urlencode({name: str(value) for name, value in query.items()})}" if query else url


@register.simple_tag(takes_context=True)
def compute_object(context: Context, model_name: str, id: object) -> str:
    """Address of one row's page."""
    return _url(context, f"{model_name}_change", quote(str(id)))


@register.simple_tag(takes_context=True)
def compute_work_item(context: Context, kind: str, key: str) -> str:
    """Address of a queued key's page."""
    return _url(context, "workitem_change", quote(token_of(kind, key)))


@register.simple_tag(takes_context=True)
def compute_requeue(context: Context) -> str:
    """Address that requeues."""
    return _url(context, "workitem_requeue")


@register.simple_tag(takes_context=True)
def compute_revoke(context: Context, token: Any) -> str:
    """Address that revokes a token."""
    return _url(context, "token_revoke", quote(str(token.pk)))


@register.simple_tag(takes_context=True)
def compute_history(context: Context) -> str:
    """Address of the queues over time."""
    return _url(context, "workitem_history")


@register.simple_tag(takes_context=True)
def compute_pause(context: Context, what: str, name: str) -> str:
    """Address that asks why ``kind`` or ``member`` of this name is to be paused."""
    url = _url(context, "pause_new")
    return f"{url}?{urlencode({'scope': f'{what}:{name}'})}" if url else ""


@register.simple_tag(takes_context=True)
def compute_resume(context: Context) -> str:
    """Address that resumes."""
    return _url(context, "pause_resume")


@register.simple_tag
def compute_token(item: Any) -> str:
    """A work item's kind and key in one string."""
    return token_of(item.kind, item.key)


@register.filter
def ago(moment: datetime | None, now: datetime) -> SafeString | str:
    """Age and timestamp."""
    return ages.moment_html(moment, now)


@register.filter
def first_line(text: str | None) -> str:
    """A text's first line."""
    return texts.line((text or "").strip().partition("\n")[0], 160)


@register.filter
def line(text: object, limit: int = texts.CELL) -> str:
    """Text that anybody may have written, in one line, unseen characters written out, cut."""
    return texts.line(str(text), limit)


@register.filter
def unlocalized(number: float) -> str:
    """A number as SVG wants it, whatever the locale."""
    return f"{number:g}"


@register.filter
def grouped(number: int) -> str:
    """A count with its thousands set apart; one that was cut says so."""
    return charts.count(number)


@register.filter
def seconds(number: int) -> str:
    """A duration, in its two largest units."""
    return ages.span(timedelta(seconds=number)) if number else "-"
