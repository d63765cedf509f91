"""What a process does before it serves, and after."""

from __future__ import annotations

from typing import Final

from better_compute import ModuleContext, describe_failure

from . import outside, tree
from .inbox import Inbox
from .outside import TenantSource
from .projection import projection


class Binding:
    """Whether this process's inbox is bound to the host's tenant source."""

    def __init__(self) -> None:
        self._source: TenantSource | None = None
        #: Why it is not, when the source refused; the sweep follows the tenants nevertheless.
        self.failed = ""

    def bind(self, ctx: ModuleContext) -> None:
        """Bind it once. A source that refuses is a finding and keeps no process from serving."""
        source = outside.source(ctx)
        if source is self._source:
            return
        self.release()
        if source is None:
            return
        try:
            source.bind(Inbox(ctx))
        except Exception as error:
            self.failed = describe_failure(error)
            ctx.log.exception("the tenant source could not be bound; its tenants are followed by the sweep only")
        else:
            self._source = source

    def release(self) -> None:
        """Let the source go."""
        source, self._source, self.failed = self._source, None, ""
        if source is not None:
            source.close()


#: Of this process.
binding: Final = Binding()


def start(ctx: ModuleContext) -> None:
    """Make the root tenant exist, load the projection and bind the inbox. A second call finds all of it done."""
    tree.ensure_root(ctx)
    projection.read(ctx)
    binding.bind(ctx)


def stop() -> None:
    """Release the inbox and the projection."""
    binding.release()
    projection.forget()
