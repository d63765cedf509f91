"""Tables made from the code, so that no page can fall behind it: ``{compute-table} errors``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec
from django.core.management import get_commands, load_command_class
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from better_compute import conf, registry
from better_compute.contract import durations, errors
from better_compute.contract.methods import MethodSpec
from better_compute.contract.reconcilers import Reconciler
from better_compute.registry import ids, table

Rows = Iterable[Iterable[str]]


def code(text: object) -> str:
    """``text`` as inline code in a Markdown table cell."""
    return f"`{str(text).replace('|', chr(92) + '|')}`" if str(text) else ""


def error_codes() -> tuple[list[str], Rows]:
    """Codes and their HTTP status."""
    return ["code", "status", "phrase"], (
        [code(each.value), str(int(status)), status.phrase] for each, status in errors.STATUS.items()
    )


def settings() -> tuple[list[str], Rows]:
    """Keys of ``COMPUTE`` with type, default and the comment that stands above the field."""
    return ["key", "type", "default", "what it is"], list(_fields(conf.Settings, ""))


def _fields(struct: type[msgspec.Struct], prefix: str) -> Iterator[list[str]]:
    comments = _field_comments(struct)
    for field in msgspec.structs.fields(struct):
        name = f"{prefix}{field.encode_name}"
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield [code(name), "", "", (field.type.__doc__ or "").strip()]
            yield from _fields(field.type, f"{name}.")
            continue
        default = field.default if field.default is not msgspec.NODEFAULT else ""
        yield [code(name), code(_type_name(field.type)), code(repr(default)), comments.get(field.name, "")]


def _type_name(annotation: object) -> str:
    plain = type(annotation) is type
    return annotation.__name__ if plain else str(annotation).replace("typing.", "")  # type: ignore[attr-defined]


def _field_comments(struct: type) -> dict[str, str]:
    """``#:`` lines above each field, read as Sphinx reads them."""
    analyzer = ModuleAnalyzer.for_module(struct.__module__)
    analyzer.analyze()
    return {
        attribute: " ".join(line.strip() for line in lines).strip()
        for (owner, attribute), lines in analyzer.attr_docs.items()
        if owner == struct.__name__
    }


def methods() -> tuple[list[str], Rows]:
    """The method table and the live registry, side by side."""
    declared = {row.method: row for row in table.rows()}
    live = {spec.dotted: spec for spec in registry.current().methods.values()}
    rows = []
    for dotted in sorted({*declared, *live}):
        spec, row = live.get(dotted), declared.get(dotted)
        what = spec.summary if spec else "Not hosted by the example project."
        source: MethodSpec | table.Row = spec or declared[dotted]
        rows.append(
            [
                f"{code(dotted)} <br> {what}",
                code(source.kind),
                code(source.action),
                row.resource if row else "by the plugin" if dotted.startswith("plugins.") else "undeclared",
            ]
        )
    return ["method", "kind", "action", "resource"], rows


def deprecations() -> tuple[list[str], Rows]:
    """Methods that will go."""
    rows = [
        [
            code(spec.dotted),
            str(spec.deprecated.since),
            code(spec.deprecated.use) if spec.deprecated.use in _live() else spec.deprecated.use,
            str(spec.deprecated.sunset or "not decided"),
        ]
        for spec in registry.current().methods.values()
        if spec.deprecated is not None
    ]
    return ["method", "deprecated since", "use", "may be gone from"], sorted(rows) or [["none", "", "", ""]]


def _live() -> set[str]:
    return {spec.dotted for spec in registry.current().methods.values()}


def reconcilers() -> tuple[list[str], Rows]:
    """Reconcilers of the built-in modules."""
    hosted = registry.current()
    rows = [
        _reconciler(hosted.reconciler_owner[name].name, reconciler)
        for name, reconciler in hosted.reconcilers.items()
        if hosted.reconciler_owner[name].plugin_id is None
    ]
    return ["reconciler", "module", "shard by", "periodic", "role"], rows or [["none hosted yet", "", "", "", ""]]


def _reconciler(owner: str, reconciler: Reconciler) -> list[str]:
    periodic = ", ".join(
        f"`{each.key}` every {durations.milliseconds(each.every) / 1000:g} s" for each in reconciler.periodic
    )
    return [code(reconciler.name), code(owner), code(reconciler.shard_by), periodic, code(reconciler.role)]


def checks() -> tuple[list[str], Rows]:
    """Ids of the registration rules."""
    rows = [
        [code(value), name.replace("_", " ").lower(), "error" if ".E" in value else "warning"]
        for name, value in vars(ids).items()
        if isinstance(value, str) and value.startswith("compute.")
    ]
    return ["id", "rule", "level"], sorted(rows)


def commands() -> tuple[list[str], Rows]:
    """Management commands of the core, with the help text each prints."""
    found = get_commands()
    rows = []
    for name in sorted(name for name, app in found.items() if app == "better_compute"):
        command = load_command_class("better_compute", name)
        rows.append([code(f"manage.py {name}"), " ".join(str(command.help).split())])
    return ["command", "what it does"], rows


TABLES: Final[Mapping[str, Callable[[], tuple[list[str], Rows]]]] = {
    "checks": checks,
    "commands": commands,
    "deprecations": deprecations,
    "errors": error_codes,
    "settings": settings,
    "methods": methods,
    "reconcilers": reconcilers,
}


def markdown(head: list[str], rows: Rows) -> str:
    """A Markdown pipe table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


class ComputeTable(SphinxDirective):
    """``{compute-table} NAME``: one of :data:`TABLES`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table where the directive stands."""
        name = self.arguments[0]
        if name not in TABLES:
            raise self.error(f"{name!r} is no table; choose from {', '.join(TABLES)}.")
        # The code may have changed although the page has not.
        self.env.note_reread()
        return self.parse_text_to_nodes(markdown(*TABLES[name]()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("compute-table", ComputeTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
