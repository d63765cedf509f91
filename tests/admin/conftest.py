"""An operator who is signed in, and one who may only look."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

VIEWED = (
    *("workitem", "lease", "worker", "process", "outboxevent", "auditevent", "migrationrecord", "token"),
    *("pause", "idempotencyrecord", "ratelimit"),
)


def make_viewer(*extra: str) -> object:
    """A staff user with the view permissions of every page, and the permissions named."""
    user = get_user_model().objects.create_user("viewer", password="viewer", is_staff=True)
    wanted = [f"view_{model}" for model in VIEWED] + list(extra)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="compute", codename__in=wanted))
    return user


@pytest.fixture
def viewer_client(db: None) -> Client:
    """A browser session of a staff user who may view every page and change nothing."""
    client = Client()
    client.force_login(make_viewer())  # type: ignore[arg-type]
    return client


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The distribution's Chromium, quiet and without a sandbox that a container cannot give."""
    # Playwright keeps an event loop in this thread; the guard would then refuse every query of the tests.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    names = ("chromium", "chromium-browser", "google-chrome")
    return {
        **browser_type_launch_args,
        "executable_path": next(filter(None, map(shutil.which, names)), None),
        "args": [
            "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--no-first-run", "--disable-quic",
        ],
    }  # fmt: skip


@pytest.fixture(scope="session")
def base_url() -> str:
    """None: the live server's address is known to each test, and the plugin's own fixture is deprecated by pytest."""
    return ""
