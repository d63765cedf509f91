"""The operator's pages, on Django's stock admin.

Three ways to show them, from least to most of it:

* On the host's own site, in any ``admin.py``::

      from django.contrib import admin
      from better_compute.admin import register_pages

      register_pages(admin.site)

* Beside it, at a URL of its own, in ``urls.py``::

      from better_compute.admin import site as compute_admin

      urlpatterns = [path("operator/", compute_admin.urls)]

* As the project's admin site, with the host's own models registered on it too: list
  ``better_compute.admin.apps.ComputeAdminConfig`` instead of ``django.contrib.admin`` in INSTALLED_APPS.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from better_compute.admin.sites import ComputeAdminSite, register_pages

    site: ComputeAdminSite

__all__ = ["ComputeAdminSite", "register_pages", "site"]


@cache
def _site() -> ComputeAdminSite:
    """The site that stands beside the host's own; its URL namespace is ``compute``."""
    from better_compute.admin.sites import ComputeAdminSite

    return ComputeAdminSite(name="compute")


def __getattr__(name: str) -> Any:
    # Lazy, because Django imports this package for ``apps`` before any model may be loaded.
    if name == "site":
        return _site()
    if name in __all__:
        from better_compute.admin import sites

        return getattr(sites, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
