"""The worker's entry point: ``celery -A example_project worker --pool threads``."""

import os

from celery import Celery

from better_compute.engine import celery as compute_celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

app = Celery("example_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
compute_celery.install(app)
