"""Makes one Django permission for every action of the catalog, after each migration."""

from __future__ import annotations

from typing import Any

from django.apps import apps as installed
from django.db import DEFAULT_DB_ALIAS, router

from better_compute import registry
from better_compute.contract.names import codename


def create_permissions(*, using: str = DEFAULT_DB_ALIAS, apps: Any = installed, **_: Any) -> None:
    """Receive ``post_migrate`` of the core: add the permissions that are missing, and take none away.

    A permission that was granted outlives the module that brought its action, so that hosting the module
    again does not silently drop who may use it.
    """
    if not installed.is_installed("django.contrib.auth"):
        return
    if not _tables_are_final(apps):
        return
    from django.contrib.auth.models import Permission
    from django.contrib.contenttypes.models import ContentType

    from better_compute.access import Action

    if not router.allow_migrate_model(using, Permission):
        return
    # A flush empties the table behind the cache, and signals this again.
    ContentType.objects.clear_cache()
    content_type = ContentType.objects.db_manager(using).get_for_model(Action, for_concrete_model=False)
    rows = Permission.objects.using(using)
    existing = set(rows.filter(content_type=content_type).values_list("codename", flat=True))
    missing = [
        Permission(content_type=content_type, codename=codename(action), name=f"May call {action}"[:255])
        for action in sorted(registry.current().actions)
        if codename(action) not in existing
    ]
    rows.bulk_create(missing, ignore_conflicts=True)


def _tables_are_final(apps: Any) -> bool:
    """Whether auth's and contenttypes' tables are what the models say; one module may be migrated alone first."""
    models = apps.all_models
    if "permission" not in models["auth"] or "contenttype" not in models["contenttypes"]:
        return False
    return all(field.name != "name" for field in models["contenttypes"]["contenttype"]._meta.local_fields)
