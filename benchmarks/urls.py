"""Our routes and those of the peers that are called, in one URL configuration."""

from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt

from benchmarks.peers import bare_drf, django_ninja, drf_serializers
from better_compute import ComputeRouter

urlpatterns = [
    path("api/compute/", include(ComputeRouter().urls)),
    path("bare/widgets/poke", csrf_exempt(bare_drf.Poke.as_view())),
    path("bare/widgets/count", csrf_exempt(bare_drf.Count.as_view())),
    path("drf/widgets/poke", csrf_exempt(drf_serializers.Poke.as_view())),
    path("drf/widgets/count", csrf_exempt(drf_serializers.Count.as_view())),
    path("drf/work/list", csrf_exempt(drf_serializers.List.as_view())),
    path("ninja/", django_ninja.api.urls),
]
