"""Routes of the example project."""

from django.urls import URLPattern, URLResolver, include, path

from better_compute import ComputeRouter

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/compute/", include(ComputeRouter().urls)),
]
