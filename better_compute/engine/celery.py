"""One line in the host's Celery app: ``install(app)``."""

from __future__ import annotations

from celery import Celery


def install(app: Celery) -> None:
    """Host the worker runtime in the workers of ``app``."""
