"""The core as a Django app, and as the first hosted module (``core``)."""

from __future__ import annotations

from django.db.models.signals import post_migrate

from better_compute.contract.methods import Catalog
from better_compute.contract.module import ComputeModule


class BetterCompute(ComputeModule):
    """Label ``compute``, ledger owner ``core``."""

    name = "better_compute"
    label = "compute"
    verbose_name = "Better Compute"
    module_name = "core"
    catalog = Catalog(
        actions=["compute:system:read", "compute:work:read", "compute:work:requeue", "compute:work:pause"]
    )

    def ready(self) -> None:
        """Register the system checks, and keep one Django permission for every action of the catalog."""
        # Models and the registry are there only now.
        from better_compute.envelope.permissions import create_permissions
        from better_compute.ledger import checks as graph_checks
        from better_compute.registry import checks

        checks.install()
        graph_checks.install()
        post_migrate.connect(create_permissions, sender=self, dispatch_uid="better_compute.permissions")
