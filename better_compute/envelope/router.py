"""``ComputeRouter``: the route table, built from the registry when the URL configuration is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, URLPattern, path, re_path, resolve
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt

from better_compute import registry
from better_compute.contract.errors import ComputeError, ErrorCode, shown
from better_compute.contract.methods import MethodSpec
from better_compute.envelope import http, reference
from better_compute.envelope.viewset import ComputeViewSet

#: Where the OpenAPI document stands; no method can, since none has a dot in its path.
DOCUMENT: Final = "openapi.json"

#: Answers every call where a registration rule is broken; what is broken is for the operator's eyes.
_NOT_SERVING: Final = ComputeError(
    ErrorCode.INTERNAL_ERROR,
    "No method is served here, since the server's configuration is broken.",
    mend="Tell the operator that `manage.py check` says what is wrong.",
)

View = Callable[..., HttpResponseBase]


class ComputeRouter:
    """Every hosted method below one prefix: ``path("api/compute/", include(ComputeRouter().urls))``.

    A request finds its method in a dictionary, so that a hundred modules cost no more than one. Each method
    also has a named pattern (``plugins.acme.widgets.poke``) for ``reverse``.
    """

    def __init__(self) -> None:
        self._serving = True
        self._views: dict[str, View] = {}
        try:
            self._views = {spec.path: _view(spec) for spec in registry.current().methods.values()}
        except ComputeError:
            # `manage.py check` imports the URLs before it lists what is broken; initialize() refuses to serve.
            self._serving = False

    @property
    def urls(self) -> list[URLPattern]:
        """The patterns to include."""
        # The first pattern answers everything, a line break included; the named ones are only ever reversed.
        dispatch: Any = _outermost(self._dispatch)
        dispatch.refuses_as_problem = True
        everything = re_path(r"^(?P<route>(?s:.*))\Z", dispatch)
        named = [path(route, view, name=route.replace("/", ".")) for route, view in self._views.items()]
        return [everything, *named]

    def _dispatch(self, request: HttpRequest, route: str) -> HttpResponseBase:
        if not self._serving:
            return http.refuse(request, _NOT_SERVING)
        if route == DOCUMENT:
            return http.serve_document(request)
        if route == reference.PAGE and request.method in ("GET", "HEAD"):
            return _reference(request)
        view = self._views.get(route)
        if view is None:
            return http.refuse(
                request,
                ComputeError(
                    ErrorCode.NOT_FOUND,
                    f"There is no method at {shown(request.path)!r}.",
                    mend="The hosted methods are listed by `manage.py authz_matrix` and in the OpenAPI document.",
                ),
            )
        return view(request)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """``handler400`` of a host: what is refused before it reaches a call, as a bad Host header, is a problem too.

    ::

        from better_compute import ComputeRouter, bad_request as handler400

    Django looks for the name in the root URL configuration, and shows a page of its own instead while DEBUG is on.
    Outside of the router's prefix its own answer stands.
    """
    try:
        view = resolve(request.path_info).func
    except Resolver404:
        view = defaults.bad_request
    if getattr(view, "refuses_as_problem", False):
        return http.refuse(request, exception)
    return defaults.bad_request(request, exception)


def _reference(request: HttpRequest) -> HttpResponseBase:
    try:
        http.refuse_body(request)
    except ComputeError as error:
        return http.refuse(request, error)
    return reference.serve(request)


def _view(spec: MethodSpec) -> View:
    if not issubclass(spec.viewset, ComputeViewSet):
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"{spec.viewset.__module__}.{spec.viewset.__qualname__} is not a ComputeViewSet.",
            mend="Derive it from better_compute.ComputeViewSet.",
        )
    # A method may be called `get` or `post`; bound here, the verbs always reach the shell.
    get = "serve" if "GET" in http.allowed(spec) else "http_method_not_allowed"
    view: Any = spec.viewset.as_view({"post": "serve", "get": get}, method_spec=spec)
    return _outermost(view)


def _outermost(function: View) -> View:
    """Keep a host's ATOMIC_REQUESTS and its CSRF middleware away: the envelope does both itself."""

    def view(*args: Any, **kwargs: Any) -> HttpResponseBase:
        return function(*args, **kwargs)

    guarded: Any = csrf_exempt(view)
    for alias in connections:
        guarded = transaction.non_atomic_requests(using=alias)(guarded)
    return guarded  # type: ignore[no-any-return]
