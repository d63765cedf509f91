"""``/livez``, ``/readyz`` and ``/metrics``, for a host's URLconf and for a worker's own port."""

from django.urls import path

from better_compute.engine.observing import views

urlpatterns = [
    path("livez", views.livez, name="compute-livez"),
    path("readyz", views.readyz, name="compute-readyz"),
    path("metrics", views.metrics, name="compute-metrics"),
]
