"""The worker's entry point: ``celery -A example_project worker --pool threads``."""

import os

from celery import Celery

import better_compute

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

app = Celery("example_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
better_compute.install_celery(app)
