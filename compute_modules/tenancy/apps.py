"""The tenancy module, which is always hosted."""

from better_compute import Catalog, ComputeModule


class Tenancy(ComputeModule):
    """Suspends, resumes and deletes tenants."""

    name = "compute_modules.tenancy"
    label = "compute_tenancy"
    verbose_name = "Tenancy"
    module_name = "tenancy"
    catalog = Catalog(
        actions=["compute:tenants:read", "compute:tenants:suspend", "compute:tenants:delete"],
    )
