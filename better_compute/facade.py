"""``compute``: the whole product as one object, for host projects, module authors and tests."""

from __future__ import annotations

from typing import Final

from better_compute import doctor, registry
from better_compute.contract.contexts import ModuleContext
from better_compute.contract.findings import Report
from better_compute.contract.principals import Authorizer
from better_compute.engine import hosting
from better_compute.engine.contexts import module_context
from better_compute.engine.jobs import Jobs
from better_compute.envelope.api import Api, call_method
from better_compute.envelope.authorize import authorizer


class Compute:
    """``from better_compute import compute``; what it shows follows the registry of this process."""

    def __init__(self) -> None:
        #: A method by its function, with its types: ``compute.call(Widgets.poke, principal, PokeInput(...))``.
        self.call = call_method

    @property
    def registry(self) -> registry.Registry:
        """What this process hosts. Raises INVALID_CONFIG when a registration rule is broken."""
        return registry.current()

    @property
    def api(self) -> Api:
        """Every hosted method, in process: ``compute.api.<group>.<method>(principal, input)``.

        A plugin's methods stand under ``compute.api.plugins.<id>``.
        """
        return Api()

    @property
    def jobs(self) -> Jobs:
        """Every hosted reconciler, to step without timers: ``compute.jobs["acme.widgets"].tick()``."""
        return Jobs()

    def initialize(self, role: str = "all", *, connections_held: int = 1) -> None:
        """Make this process ready to serve; ``connections_held`` is how many of its threads use the database at once.

        Two threads or more must say so, since doctor compares what all processes may hold with ``max_connections``.
        See :func:`better_compute.engine.hosting.initialize`.
        """
        hosting.initialize(role, connections_held=connections_held)

    def stop(self) -> None:
        """Stop loops, then modules in reverse; see :func:`better_compute.engine.hosting.stop`."""
        hosting.stop()

    @property
    def authorizer(self) -> Authorizer:
        """What judges every call: the one that ``COMPUTE["IAM"]`` names, or the one on Django's permissions.

        Raises
        ------
        ComputeError
            INVALID_CONFIG when the path leads to nothing that authorizes.
        """
        return authorizer()

    def context(self, module: str) -> ModuleContext:
        """A hosted module's own context, for its code that is reached from outside: a view, an authorizer, a shell.

        Raises
        ------
        ComputeError
            NOT_FOUND naming the modules that are hosted.
        """
        return module_context(registry.current().module(module))

    def self_check(self) -> Report:
        """The same answer as ``system.selfCheck`` and ``manage.py doctor``."""
        return doctor.report()


compute: Final = Compute()
