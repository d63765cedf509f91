"""Who may do what: the default authorizer, on Django's permissions, and the choice of another (``COMPUTE["IAM"]``)."""

from __future__ import annotations

import copy
from collections.abc import Collection
from functools import cache
from typing import Any, Final

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.methods import Resource
from better_compute.contract.names import codename
from better_compute.contract.principals import Authorizer, Decision, Principal

ANY_TENANT: Final = "compute.any_tenant"


class DjangoPermissions:
    """Default deny. A user needs the action's permission; in which tenant depends on how the user calls.

    - A token acts in its own tenant only, a superuser's as well. A token of the installation (no tenant) acts
      on the installation, and in every tenant when its user may.
    - A session acts on the installation, and in every tenant when its user is a superuser or has the permission
      ``compute.any_tenant``.
    - Code of this process (kind ``internal``) is trusted, within the tenant it names if it names one.

    What lies in another tenant is denied as invisible, so that it reads NOT_FOUND.
    """

    def authorize(self, principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> Decision:
        """Judge one call; see :class:`better_compute.contract.principals.Authorizer`."""
        if principal.kind == "internal" and principal.user is None:
            return Decision(principal.tenant_id in (None, tenant_id), visible=False, reason="OTHER_TENANT")
        user = _unremembered(principal.user)
        if user is None or not user.is_active:
            return Decision(False, reason="INACTIVE")
        if tenant_id is None:
            if principal.tenant_id is not None:
                return Decision(False, reason="INSTALLATION_ONLY")
        elif principal.tenant_id is None:
            if not user.has_perm(ANY_TENANT):
                return Decision(False, visible=False, reason="OTHER_TENANT")
        elif principal.tenant_id != tenant_id:
            return Decision(False, visible=False, reason="OTHER_TENANT")
        if not user.has_perm(f"compute.{codename(action)}"):
            return Decision(False, reason="PERMISSION_MISSING")
        return Decision(True)

    def tenants_allowed(self, principal: Principal, action: str) -> Collection[str] | None:
        """Where :meth:`authorize` would allow ``action`` on a tenant as a whole; None for everywhere."""
        own = None if principal.tenant_id is None else (principal.tenant_id,)
        if principal.kind == "internal" and principal.user is None:
            return own
        user = _unremembered(principal.user)
        if user is None or not user.is_active or not user.has_perm(f"compute.{codename(action)}"):
            return ()
        return own if own is not None or user.has_perm(ANY_TENANT) else ()


def tenants_allowed(principal: Principal, action: str) -> Collection[str] | None:
    """The tenants in which ``principal`` may do ``action``, for lists that are read by tenant; None for every one.

    An authorizer tells with a method of this name. One without it is asked about the installation: who may do the
    action there may see every tenant's rows in such a list, and others see none.
    """
    chosen = authorizer()
    tell = getattr(chosen, "tenants_allowed", None)
    if tell is not None:
        found: Collection[str] | None = tell(principal, action)
        return found
    installation = Resource("system", "installation")
    return None if chosen.authorize(principal, action, installation, None).allowed else ()


def _unremembered(user: Any) -> Any:
    """The user without the permissions that Django's backends remembered on it, for a long-lived object."""
    kept = [name for name in getattr(user, "__dict__", ()) if name.endswith("_perm_cache")]
    if not kept:
        return user
    fresh = copy.copy(user)
    for name in kept:
        delattr(fresh, name)
    return fresh


@cache
def authorizer() -> Authorizer:
    """The authorizer that ``COMPUTE["IAM"]`` names, or the default.

    Raises
    ------
    ComputeError
        INVALID_CONFIG when the path leads to nothing that authorizes.
    """
    path = conf.current().iam
    if not path:
        return DjangoPermissions()
    try:
        found = import_string(path)
        chosen = found() if isinstance(found, type) else found
    except ImportError as error:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"COMPUTE['IAM'] = {path!r} cannot be imported: {error}.",
            mend="Give the dotted path of a class with authorize(principal, action, resource, tenant_id).",
        ) from error
    if not callable(getattr(chosen, "authorize", None)):
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"COMPUTE['IAM'] = {path!r} has no method authorize.",
            mend="Give the dotted path of a class with authorize(principal, action, resource, tenant_id).",
        )
    return chosen  # type: ignore[no-any-return]


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "COMPUTE":
        authorizer.cache_clear()


setting_changed.connect(_forget, dispatch_uid="better_compute.envelope.authorize")
