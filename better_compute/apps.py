"""The core as a Django app, and as the first hosted module (``core``)."""

from __future__ import annotations

from better_compute.contract.methods import Catalog
from better_compute.contract.module import ComputeModule


class BetterCompute(ComputeModule):
    """Label ``compute``, ledger owner ``core``."""

    name = "better_compute"
    label = "compute"
    verbose_name = "Better Compute"
    module_name = "core"
    catalog = Catalog(actions=["compute:system:read", "compute:work:requeue"])
