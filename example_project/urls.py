"""Routes of the example project."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from better_compute import ComputeRouter

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/compute/", include(ComputeRouter().urls)),
]
