"""``ComputeViewSet``: the DRF view set that module authors subclass, and the shell around every call.

The shell is deaf to a host's ``REST_FRAMEWORK`` settings: everything they could change is set here.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.methods import DECLARATION, MethodGroup, MethodSpec
from better_compute.envelope import http

#: Attributes that the shell needs for itself; a method of this name would take their place.
_SHELL = frozenset(
    {
        "as_view",
        "dispatch",
        "finalize_response",
        "group",
        "group_name",
        "handle_exception",
        "http_method_not_allowed",
        "initial",
        "initialize_request",
        "method_spec",
        "serve",
        "setup",
    }
)


class _FixedNegotiation(BaseContentNegotiation):
    """Every answer is JSON, whatever ``Accept`` says."""

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return None

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return BaseRenderer(), "application/json"


class ComputeViewSet(MethodGroup, ViewSet):
    """A group of methods; decorate each with :func:`~better_compute.compute_method`.

    A method is called on a fresh instance that serves no request: it reaches the caller through its context
    only, so that it works the same over HTTP and in process.
    """

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    parser_classes = ()
    renderer_classes = (BaseRenderer,)
    content_negotiation_class = _FixedNegotiation
    versioning_class = None
    metadata_class = None
    schema = None
    http_method_names = ["post", "get"]

    #: The method that this view serves; set by the router.
    method_spec: MethodSpec | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in sorted(_SHELL & cls.__dict__.keys()):
            if hasattr(cls.__dict__[name], DECLARATION):
                raise ComputeError(
                    ErrorCode.INVALID_CONFIG,
                    f"{cls.__module__}.{cls.__qualname__} declares a method named {name!r}.",
                    mend="Give the method another name; ComputeViewSet needs this one.",
                )

    def serve(self, request: Request, **_: Any) -> HttpResponse:
        """Answer one request for this view's method."""
        if self.method_spec is None:
            raise ComputeError(
                ErrorCode.INTERNAL_ERROR, "The view was not made by ComputeRouter.", mend="Route ComputeRouter().urls."
            )
        return http.serve(self.method_spec, request._request)

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Wrap the request without parsers and authenticators; the envelope has its own."""
        return Request(request, negotiator=_FixedNegotiation(), parser_context={"kwargs": kwargs})

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Do nothing: negotiation, authentication, permissions and throttles are the envelope's."""

    def http_method_not_allowed(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """Refuse with the methods that are allowed."""
        allowed = http.allowed(self.method_spec)
        return http.refuse(
            request._request,
            ComputeError(
                ErrorCode.METHOD_NOT_ALLOWED,
                f"{request.method} is not allowed here.",
                mend=f"Use {' or '.join(allowed)}.",
            ),
            {"Allow": ", ".join(allowed)},
        )

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]
        """Turn an exception into a problem document."""
        return http.refuse(self.request._request, exc)

    def finalize_response(  # type: ignore[override]
        self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Leave the answer as the envelope made it."""
        return response

    def options(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """Refuse: there is nothing to describe beside the OpenAPI document."""
        return self.http_method_not_allowed(request)
