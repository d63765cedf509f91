"""A host project. Its Celery app is loaded with it, so that the API's processes send hints to the workers too."""

from example_project.celery import app as celery_app

__all__ = ("celery_app",)
