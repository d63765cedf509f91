"""Django views that a host mounts: ``path("", include("better_compute.engine.observing.urls"))``.

``/livez`` and ``/readyz`` tell everybody yes or no; what is wrong, and ``/metrics``, only those who may see it:
callers with the bearer token of ``COMPUTE["OBSERVE"]["TOKEN"]``, or on the loopback interface when ``LOOPBACK`` is
set. With neither set nobody may.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from django.db import connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from better_compute import conf
from better_compute.engine.observing import exposition, probes


def may_see(request: HttpRequest) -> bool:
    """Whether the caller gave the token, or stands on this machine and that is enough."""
    settings = conf.current().observe
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if settings.token and scheme.lower() == "bearer":
        return hmac.compare_digest(given.strip().encode(), settings.token.encode())
    # Behind a proxy everybody seems to be local, so a forwarded call never counts as one.
    forwarded = "Forwarded" in request.headers or "X-Forwarded-For" in request.headers
    return settings.loopback and not forwarded and _is_loopback(request.META.get("REMOTE_ADDR", ""))


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """This process answers; asks nothing else, so that a database that is down restarts nobody."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when the process can serve, 503 when not."""
    found = probes.problems()
    if "database" in found:
        connections[conf.current().database].close()
    status = 503 if found else 200
    if may_see(request):
        return JsonResponse({"ready": not found, "problems": found}, status=status)
    return HttpResponse("not ready\n" if found else "ok\n", content_type="text/plain", status=status)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus's text format, for those who may see it."""
    if not may_see(request):
        return HttpResponse(
            'Give the bearer token of COMPUTE["OBSERVE"]["TOKEN"].\n',
            content_type="text/plain",
            status=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
    try:
        content_type, text = exposition.page()
    except ModuleNotFoundError:
        return HttpResponse("Install better-compute[observability].\n", content_type="text/plain", status=501)
    return HttpResponse(text, content_type=content_type)
