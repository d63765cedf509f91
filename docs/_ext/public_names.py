"""``{public-names} better_compute.contract.errors``: the names of that room that ``better_compute`` exports.

A page that lists rooms, checked by :func:`undocumented`, cannot forget a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Final

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

import better_compute

#: Public names by the room they come from; Meta is msgspec's and documented there.
ROOMS: Final[Mapping[str, tuple[str, ...]]] = {
    room: names for room, names in better_compute._HOME.items() if room.startswith("better_compute.")
}


def directive(name: str) -> list[str]:
    """The autodoc directive for one public name."""
    value = getattr(better_compute, name)
    if inspect.isclass(value):
        return [f".. autoclass:: better_compute.{name}", "   :members:", "   :show-inheritance:", ""]
    if inspect.isfunction(value):
        return [f".. autofunction:: better_compute.{name}", ""]
    return [f".. autodata:: better_compute.{name}", "   :no-value:", ""]


class PublicNames(SphinxDirective):
    """Document every public name of a room. Used inside ``{eval-rst}``, since autodoc writes reStructuredText."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse one autodoc directive for each name."""
        room = self.arguments[0]
        if room not in ROOMS:
            raise self.error(f"{room!r} exports nothing; choose from {', '.join(ROOMS)}.")
        # The docstrings may have changed although the page has not.
        self.env.note_reread()
        documented = self.env.__dict__.setdefault("compute_rooms", set())
        documented.add(room)
        lines = [line for name in ROOMS[room] for line in directive(name)]
        box = nodes.container()
        self.state.nested_parse(StringList(lines, source=room), self.content_offset, box)
        return box.children


def undocumented(app: Sphinx, env: BuildEnvironment) -> None:
    """Fail the build when a room with public names stands on no page."""
    del app
    forgotten = set(ROOMS) - set(getattr(env, "compute_rooms", ROOMS))
    if forgotten:
        raise ExtensionError(f"No page documents the public names of {', '.join(sorted(forgotten))}.")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the check."""
    app.add_directive("public-names", PublicNames)
    app.connect("env-check-consistency", undocumented)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


__all__: Iterable[str] = ("setup",)
