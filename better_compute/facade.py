"""``compute``: the whole product as one object, for host projects and tests."""

from __future__ import annotations

from typing import Any

from better_compute import doctor, hosting, registry
from better_compute.contract.findings import Report


class Compute:
    """``from better_compute import compute``."""

    @property
    def registry(self) -> registry.Registry:
        """What this process hosts."""
        return registry.current()

    @property
    def api(self) -> Any:
        """Every hosted method, in process: ``compute.api.<group>.<method>(principal, input)``."""
        from better_compute.envelope.api import Api

        return Api()

    @property
    def jobs(self) -> Any:
        """Every hosted reconciler, to step without timers: ``compute.jobs["acme.widgets"].tick()``."""
        from better_compute.engine.jobs import Jobs

        return Jobs()

    def initialize(self, role: str = "all") -> None:
        """Make this process ready to serve; see :func:`better_compute.hosting.initialize`."""
        hosting.initialize(role)

    def stop(self) -> None:
        """Stop loops, then modules in reverse; see :func:`better_compute.hosting.stop`."""
        hosting.stop()

    def self_check(self) -> Report:
        """The same answer as ``system.selfCheck`` and ``manage.py doctor``."""
        return doctor.report()


compute = Compute()
