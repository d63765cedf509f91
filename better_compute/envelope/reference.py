"""The reference page: the shell of an interactive page over the OpenAPI document, from packaged assets alone."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.templatetags.static import static

#: Where the page stands below the API; no method can, since each has two segments.
PAGE: Final = "reference"


def serve(request: HttpRequest) -> HttpResponse:
    """Answer the page. It tells nothing by itself: what it shows it reads with its reader's credential."""
    base = request.path.removesuffix(PAGE)
    response = render(request, "compute/reference.html", {"base": base, "csrf": get_token(request)})
    response["Content-Security-Policy"] = _policy()
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    response["Referrer-Policy"] = "no-referrer"
    return response


def _policy() -> str:
    """Scripts and styles of the static files' origin, calls of our own; nothing inline, nothing else."""
    asset = urlsplit(static("compute/reference.js"))
    files = f"{asset.scheme}://{asset.netloc}" if asset.netloc and asset.scheme else "'self'"
    return (
        f"default-src 'none'; script-src {files}; style-src {files}; img-src {files}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
