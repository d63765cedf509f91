"""What a process does before it serves, and after."""

from __future__ import annotations

from better_compute import ModuleContext

from . import tree
from .projection import projection


def start(ctx: ModuleContext) -> None:
    """Make the root tenant exist and load the projection. A second call finds both done."""
    tree.ensure_root(ctx)
    projection.read(ctx)


def stop() -> None:
    """Release the projection."""
    projection.forget()
