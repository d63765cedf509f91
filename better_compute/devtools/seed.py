"""``python -m better_compute.devtools.seed FILE``: who can log in and call, the same in every start.

Makes a superuser, a token of the installation for it, and for each of two tenants a user that may do everything a
plugin declares, with a token of that tenant. FILE holds their secrets in plain text for the person at this machine.
"""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Any

import django

ADMIN = "admin"
TENANTS = ("acme-east", "acme-west")


def main(file: Path) -> None:
    """Make what is missing, keep what works, and write FILE."""
    django.setup()
    from django.contrib.auth import get_user_model

    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    password = known.get("password") or secrets.token_urlsafe(12)
    admin, _ = get_user_model().objects.get_or_create(
        username=ADMIN, defaults={"is_staff": True, "is_superuser": True, "is_active": True}
    )
    if not admin.check_password(password):
        admin.set_password(password)
        admin.save()
    tokens = known.get("tokens", {})
    login = {
        "user": ADMIN,
        "password": password,
        "installation_token": _token(admin, None, known.get("installation_token")),
        "tokens": {tenant: _token(_service_user(tenant), tenant, tokens.get(tenant)) for tenant in TENANTS},
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(login, indent=1), encoding="utf-8")
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
    return user


def _token(user: Any, tenant: str | None, secret: str | None) -> str:
    """The secret when a token of it still works, else a new token's."""
    from better_compute.access import Token
    from better_compute.envelope import tokens

    if secret and Token.objects.filter(digest=tokens.digest(secret), tenant_id=tenant, revoked_at=None).exists():
        return secret
    return tokens.create(user=user, label="demo", tenant_id=tenant)[0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
