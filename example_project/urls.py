"""Routes of the example project."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from better_compute import ComputeRouter, bad_request

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    # What a browser asks for beside a page that links no icon, as Django's own pages do not.
    path("favicon.ico", RedirectView.as_view(url=static("compute/icon.svg"))),
    path("", include("better_compute.engine.observing.urls")),
    path("admin/", admin.site.urls),
    path("api/compute/", include(ComputeRouter().urls)),
]
handler400 = bad_request
