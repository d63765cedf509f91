"""Routes of the example project."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from better_compute import ComputeRouter

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("", include("better_compute.engine.observing.urls")),
    path("admin/", admin.site.urls),
    path("api/compute/", include(ComputeRouter().urls)),
]
