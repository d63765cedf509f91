"""Times as an operator reads them: how long ago first, the timestamp beside it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def span(delta: timedelta) -> str:
    """The two largest units of a duration, its sign left out: ``3m 12s``, ``4d 2h``, ``0s``."""
    seconds = abs(int(delta.total_seconds()))
    parts: list[str] = []
    for unit, size in _UNITS:
        if seconds >= size or parts:
            parts.append(f"{seconds // size}{unit}")
            seconds %= size
        if len(parts) == 2:
            break
    return " ".join(part for index, part in enumerate(parts) if index == 0 or not part.startswith("0")) or "0s"


def relative(moment: datetime, now: datetime) -> str:
    """``3m 12s ago``, ``in 4h`` or ``now``."""
    delta = now - moment
    if abs(delta) < timedelta(seconds=1):
        return "now"
    return f"{span(delta)} ago" if delta > timedelta() else f"in {span(delta)}"


def timestamp(moment: datetime, now: datetime) -> str:
    """The moment in the active time zone; only the time of day when that is today."""
    local = localtime(moment)
    return date_format(local, "H:i:s" if local.date() == localtime(now).date() else "Y-m-d H:i")


def moment_html(moment: datetime | None, now: datetime) -> SafeString | str:
    """Age and timestamp of a moment as a ``<time>``; a dash for None."""
    if moment is None:
        return "-"
    return format_html(
        '<time datetime="{}" title="{}"><span class="compute-age">{}</span> '
        '<span class="compute-stamp">{}</span></time>',
        moment.isoformat(),
        localtime(moment).isoformat(sep=" ", timespec="seconds"),
        relative(moment, now),
        timestamp(moment, now),
    )
