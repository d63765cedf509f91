"""The API server's entry point."""

import atexit
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
application = get_wsgi_application()

from better_compute import compute  # noqa: E402  (Django must be set up first)

# `compute_serve --roles api --threads` sets it; another server must be told to use as many threads.
compute.initialize("api", connections_held=int(os.environ.get("COMPUTE_THREADS", "4")))
atexit.register(compute.stop)
