"""``{state-diagram} states/work.toml``: a picture and a table, both made from the same data."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from better_compute import StateTable

#: Distances in SVG units: between grid points, and the size of a state's box.
COLUMN: Final = 330
ROW: Final = 110
WIDTH: Final = 150
HEIGHT: Final = 44
MARGIN: Final = (100, 96)


class State(msgspec.Struct, forbid_unknown_fields=True):
    """A state: where it stands and what it means. ``outside`` draws it dashed (no row)."""

    at: tuple[int, int]
    label: str
    meaning: str
    outside: bool = False


class Edge(msgspec.Struct, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}):
    """A transition. ``aside`` moves it to its left, ``at`` says where on it the label stands (0 to 1)."""

    source: str
    target: str
    label: str
    aside: float = 0
    at: float = 0.5
    through: str = ""


class Diagram(msgspec.Struct, forbid_unknown_fields=True):
    """A state machine as data. ``table`` (``module:NAME``) is the StateTable that it draws, edge for edge."""

    title: str
    columns: int
    rows: int
    states: dict[str, State]
    edges: list[Edge]
    table: str = ""

    @classmethod
    def read(cls, path: Path) -> Diagram:
        """Read ``path``; an edge to a state that is not there raises, and so does any difference from the table."""
        diagram = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), cls)
        for edge in diagram.edges:
            for name in (edge.source, edge.target):
                if name not in diagram.states:
                    raise ValueError(f"{path.name}: {name!r} is no state; it has {', '.join(diagram.states)}.")
        if diagram.table:
            diagram.compare(path.name)
        return diagram

    def compare(self, name: str) -> None:
        """Raise ValueError for an edge that the table does not have, and for one that is not drawn."""
        module, _, attribute = self.table.partition(":")
        table: StateTable[Any, Any] = getattr(import_module(module), attribute)
        drawn = {(edge.source, edge.label, edge.target) for edge in self.edges}
        said = {(str(source), str(verb), str(target)) for (source, verb), target in table.transitions.items()}
        for source, verb, target in sorted(drawn ^ said):
            which = "drawn and not in" if (source, verb, target) in drawn else "not drawn and in"
            raise ValueError(f"{name}: {source} -> {verb} -> {target} is {which} {self.table}.")


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the picture."""

    x: float
    y: float

    def __str__(self) -> str:
        return f"{self.x:.1f} {self.y:.1f}"


@dataclass(slots=True)
class Picture:
    """Draws a diagram as SVG; colours come from the page's style sheet."""

    diagram: Diagram
    _labels: list[str] = field(default_factory=list)

    def svg(self) -> str:
        """The whole picture."""
        width = 2 * MARGIN[0] + COLUMN * (self.diagram.columns - 1)
        height = 2 * MARGIN[1] + ROW * (self.diagram.rows - 1) - 40
        edges = "".join(self._edge(edge) for edge in self.diagram.edges)
        states = "".join(self._state(state) for state in self.diagram.states.values())
        return (
            f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{escape(self.diagram.title)}" xmlns="http://www.w3.org/2000/svg">'
            f"<title>{escape(self.diagram.title)}</title>"
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse"><path d="M 0 0 L 10 5 L 0 10 z"/></marker></defs>'
            f"{edges}{states}{''.join(self._labels)}</svg>"
        )

    def _centre(self, state: State) -> Point:
        return Point(MARGIN[0] + COLUMN * state.at[0], MARGIN[1] + ROW * state.at[1])

    def _state(self, state: State) -> str:
        at = self._centre(state)
        kind = "state outside" if state.outside else "state"
        return (
            f'<g class="{kind}"><rect x="{at.x - WIDTH / 2}" y="{at.y - HEIGHT / 2}" width="{WIDTH}" '
            f'height="{HEIGHT}" rx="7"/><text x="{at.x}" y="{at.y}">{escape(state.label)}</text></g>'
        )

    def _edge(self, edge: Edge) -> str:
        start, end = self._centre(self.diagram.states[edge.source]), self._centre(self.diagram.states[edge.target])
        if edge.source == edge.target:
            return self._loop(edge, start)
        if edge.through == "top":
            return self._over_the_top(edge, start, end)
        length = math.dist((start.x, start.y), (end.x, end.y))
        # Left of the direction of travel, with y pointing down.
        left = Point((end.y - start.y) / length * edge.aside, -(end.x - start.x) / length * edge.aside)
        first, last = _border(start, end, left), _border(end, start, left)
        place = Point(first.x + (last.x - first.x) * edge.at, first.y + (last.y - first.y) * edge.at)
        # Beside a line that runs along the text, on one that crosses it.
        beside = 11 * math.copysign(1, left.y) if edge.aside and abs(left.y) > abs(left.x) else 0
        outside = 62 * math.copysign(1, left.x) if edge.aside and abs(left.x) > abs(left.y) else 0
        self._label(edge.label, Point(place.x + outside, place.y + beside))
        return f'<path class="edge" d="M {first} L {last}" marker-end="url(#arrow)"/>'

    def _loop(self, edge: Edge, at: Point) -> str:
        top = at.y - HEIGHT / 2
        self._label(edge.label, Point(at.x, top - 32))
        return (
            f'<path class="edge" d="M {at.x - 26} {top} C {at.x - 40} {top - 40} {at.x + 40} {top - 40} '
            f'{at.x + 26} {top}" marker-end="url(#arrow)"/>'
        )

    def _over_the_top(self, edge: Edge, start: Point, end: Point) -> str:
        lane = start.y - HEIGHT / 2 - 58
        self._label(edge.label, Point((start.x + end.x) / 2, lane))
        return (
            f'<path class="edge" d="M {start.x + 30} {start.y - HEIGHT / 2} V {lane + 12} Q {start.x + 30} {lane} '
            f"{start.x + 18} {lane} H {end.x - 18} Q {end.x - 30} {lane} {end.x - 30} {lane + 12} "
            f'V {end.y - HEIGHT / 2}" marker-end="url(#arrow)"/>'
        )

    def _label(self, text: str, at: Point) -> None:
        # The text twice: once as a thick stroke in the page's colour, so that an edge does not run through it.
        place = f'x="{at.x:.1f}" y="{at.y + 4:.1f}"'
        self._labels.append(
            f'<text class="label label-ground" {place}>{escape(text)}</text>'
            f'<text class="label" {place}>{escape(text)}</text>'
        )


def _border(centre: Point, towards: Point, moved: Point) -> Point:
    """Where the line from ``centre`` to ``towards``, moved aside, leaves the box."""
    dx, dy = towards.x - centre.x, towards.y - centre.y
    scale = min(
        (WIDTH / 2 + 2 - abs(moved.x) * (dx == 0)) / abs(dx) if dx else math.inf,
        (HEIGHT / 2 + 2) / abs(dy) if dy else math.inf,
    )
    return Point(centre.x + dx * scale + moved.x, centre.y + dy * scale + moved.y)


def table(diagram: Diagram) -> str:
    """States, and every transition, as Markdown."""
    states = [f"| {state.label} | {state.meaning} |" for state in diagram.states.values()]
    label: Mapping[str, str] = {name: state.label for name, state in diagram.states.items()}
    edges = [f"| {label[edge.source]} | {edge.label} | {label[edge.target]} |" for edge in diagram.edges]
    return "\n".join(
        ["| state | meaning |", "| --- | --- |", *states, "", "| from | on | to |", "| --- | --- | --- |", *edges]
    )


class StateDiagram(SphinxDirective):
    """``{state-diagram} PATH``, relative to the docs."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Draw the picture and write the table below it."""
        path = Path(self.env.srcdir, self.arguments[0])
        self.env.note_dependency(str(path))
        diagram = Diagram.read(path)
        figure: list[Any] = [nodes.raw("", f'<div class="state-diagram">{Picture(diagram).svg()}</div>', format="html")]
        return figure + self.parse_text_to_nodes(table(diagram))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("state-diagram", StateDiagram)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
