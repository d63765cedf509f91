"""``python -m better_compute.devtools.seed FILE``: who can log in and call, the same in every start.

Makes a superuser, a token of the installation for it, and for each of two tenants a user that may do everything a
plugin declares, with a token of that tenant. Where a module keeps a tree of tenants, the superuser owns its root and
the tenants stand below it. FILE holds their secrets in plain text for the person at this machine.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any

import django

from better_compute.contract.principals import Principal
from better_compute.devtools.place import read_object, write_object

ADMIN = "admin"
TENANTS = ("acme-east", "acme-west")
#: Code of this process.
_TRUSTED = Principal(id="internal/seed", kind="internal")


def main(file: Path) -> None:
    """Make what is missing, keep what works, and write FILE."""
    django.setup()
    from django.contrib.auth import get_user_model

    # What a broken file held is made anew.
    known = read_object(file) or {}
    password = known.get("password") or secrets.token_urlsafe(12)
    admin, _ = get_user_model().objects.get_or_create(
        username=ADMIN, defaults={"is_staff": True, "is_superuser": True, "is_active": True}
    )
    if not admin.check_password(password):
        admin.set_password(password)
        admin.save()
    tokens = known.get("tokens", {})
    _grant_to(admin)
    login = {
        "user": ADMIN,
        "password": password,
        "installation_token": _token(admin, None, known.get("installation_token")),
        "tokens": {tenant: _token(_service_user(tenant), tenant, tokens.get(tenant)) for tenant in TENANTS},
    }
    write_object(file, login)
    print(f"user {ADMIN} and a token for each of {', '.join(TENANTS)}")


def _service_user(tenant: str) -> Any:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Permission

    from better_compute import registry
    from better_compute.contract.names import codename

    user, _ = get_user_model().objects.get_or_create(username=f"service@{tenant}")
    plugins = [module for module in registry.current().modules if module.plugin_id]
    actions = [codename(action) for plugin in plugins for action in plugin.catalog.actions]
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="compute", codename__in=actions))
    if _root() is not None and actions:
        patterns = sorted({f"{action.rpartition(':')[0]}:*" for plugin in plugins for action in plugin.catalog.actions})
        _grant(tenant, user, actions=patterns)
    return user


def _root() -> str | None:
    """The root of the tree of tenants, None where no module keeps one."""
    from better_compute.engine.contexts import served_port

    tree = served_port("tenant-tree")
    return None if tree is None else tree.root()


def _grant_to(admin: Any) -> None:
    from better_compute import ComputeError, ErrorCode, compute

    root = _root()
    if root is None:
        return
    for tenant in TENANTS:
        place = {"parentId": root, "tenantId": tenant, "kind": "organisation", "name": tenant}
        try:
            compute.api.tenant_tree.create(_TRUSTED, place)
        except ComputeError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
    _grant(root, admin, role="owner", inherit=True)


def _grant(tenant: str, user: Any, **what: Any) -> None:
    """Grant it once; a tenant that was deleted meanwhile is left alone."""
    from better_compute import ComputeError, compute

    who = {"tenantId": tenant, "principal": f"user/{user.pk}"}
    if compute.api.grants.list(_TRUSTED, {**who, "state": "active"}).items:
        return
    try:
        compute.api.grants.create(_TRUSTED, {**who, **what})
    except ComputeError as error:
        print(f"nothing granted in {tenant}: {error.message}")


def _token(user: Any, tenant: str | None, secret: str | None) -> str:
    """The secret when a token of it still works, else a new token's."""
    from better_compute.access import Token
    from better_compute.envelope import tokens

    if secret and Token.objects.filter(digest=tokens.digest(secret), tenant_id=tenant, revoked_at=None).exists():
        return secret
    return tokens.create(user=user, label="demo", tenant_id=tenant)[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
