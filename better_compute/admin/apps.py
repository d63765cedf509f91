"""Makes :class:`~better_compute.admin.sites.ComputeAdminSite` the project's ``django.contrib.admin.site``."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class ComputeAdminConfig(AdminConfig):
    """In INSTALLED_APPS instead of ``django.contrib.admin``."""

    default = False
    default_site = "better_compute.admin.sites.ComputeAdminSite"
