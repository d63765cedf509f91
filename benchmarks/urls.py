"""Our routes and the bare peer's, in one URL configuration."""

from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from benchmarks.peers import bare_drf
from better_compute import ComputeRouter

urlpatterns = [
    path("api/compute/", include(ComputeRouter().urls)),
    path("bare/widgets/poke", csrf_exempt(bare_drf.Poke.as_view())),
    path("bare/widgets/count", csrf_exempt(bare_drf.Count.as_view())),
]
