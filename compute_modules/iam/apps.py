"""The iam module, which a host adds to ``INSTALLED_APPS`` and selects with ``COMPUTE["IAM"]``."""

from __future__ import annotations

import msgspec

from better_compute import Catalog, ComputeModule

from .providers import Provider
from .resources import RESOURCE_TYPES


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """``COMPUTE["iam"]``."""

    #: The tenant above all others, which stands for the installation itself.
    root_tenant_id: str = "root"
    #: Ids of the plugins whose actions may be granted; None allows every hosted plugin's.
    plugins: tuple[str, ...] | None = None
    #: Identity providers whose tokens are accepted.
    providers: tuple[Provider, ...] = ()
    #: Longest that breaking the glass may last, in minutes.
    break_glass_minutes: int = 60
    #: Path of a callable that returns a ``compute_modules.iam.outside.TenantSource``: tenants that are kept elsewhere.
    tenant_source: str = ""


class Iam(ComputeModule):
    """Principals, tenants, roles, grants and tokens."""

    name = "compute_modules.iam"
    label = "compute_iam"
    verbose_name = "Identity and access"
    module_name = "iam"
    requires = ("tenancy",)
    options = Options
    catalog = Catalog(
        actions=[
            "compute:iam:read",
            "compute:iam:manage",
            "compute:iam:manage-tenants",
            "compute:iam:manage-tokens",
            "compute:iam:break-glass",
        ],
        resource_types=RESOURCE_TYPES,
    )
