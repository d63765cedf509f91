"""What ``compute_serve --roles stream`` has its server load: the stream process, with Django set up."""

import django

django.setup()

from better_compute.envelope.stream import Stream  # noqa: E402  (models need the apps)

application = Stream()
