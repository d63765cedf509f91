"""What granian serves for the figures over HTTP: an API process, initialized as a host's own is."""

import atexit
import os

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()

from better_compute import compute  # noqa: E402  (Django must be set up first)

compute.initialize("api", connections_held=int(os.environ["COMPUTE_THREADS"]))
atexit.register(compute.stop)
