"""Modules as tests declare them, and what the registry says of them."""

from __future__ import annotations

from typing import Any

from better_compute import registry
from better_compute.contract.methods import Empty, MethodGroup, MethodSpec, Resource
from better_compute.contract.module import ModuleSpec
from better_compute.contract.outcomes import DONE, Outcome
from better_compute.contract.reconcilers import Reconciler


def module(name: str = "gadgets", **fields: Any) -> ModuleSpec:
    """A module that breaks no rule, but for the fields given."""
    return ModuleSpec(**{"name": name, "path": f"host.{name}", "label": f"host_{name}".replace("-", "_"), **fields})


def plugin(id: str = "acme", **fields: Any) -> ModuleSpec:
    """A plugin that breaks no rule, but for the fields given."""
    label = f"plg_{id.replace('-', '_')}"
    return ModuleSpec(**{"name": id, "path": f"host.{id}", "label": label, "plugin_id": id, **fields})


class Widgets(MethodGroup):
    """Stands in for the group that a method's spec names."""


def method(attribute: str = "poke", group: str = "widgets", action: str = "compute:acme:poke", **fields: Any) -> Any:
    """A method as the registry reads it from a viewset."""
    return MethodSpec(
        **{
            "module": "acme",
            "plugin_id": "acme",
            "group": group,
            "attribute": attribute,
            "action": action,
            "kind": "mutation",
            "resource": lambda _: Resource("tenant", "t1"),
            "input_type": Empty,
            "takes_input": False,
            "output_type": dict,
            "summary": "",
            "viewset": Widgets,
            **fields,
        }
    )


def reconciler(name: Any = "gadgets.sync", **fields: Any) -> Reconciler:
    """An instance of a class of its own, with the class attributes given."""

    def run(self: Reconciler, ctx: Any, key: str) -> Outcome:
        return DONE

    made: type[Reconciler] = type("Sync", (Reconciler,), {"name": name, "run": run, **fields})
    return made()


def told(*specs: Any) -> list[tuple[str | None, str, str | None]]:
    """(id, message, hint) of everything that hosting exactly ``specs`` breaks."""
    with registry.override(*specs):
        return [(message.id, message.msg, message.hint) for message in registry.problems()]
