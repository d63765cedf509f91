"""However malformed a declaration is, the checks say so and never crash."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.test import override_settings
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from better_compute import (
    Catalog,
    CliCommand,
    CommandKind,
    ComputeModule,
    ComputePlugin,
    Extension,
    ModuleStatusHandler,
    Periodic,
    ProfileDocument,
    ResourceType,
    registry,
)
from better_compute.contract.module import ModuleSpec
from better_compute.registry import checking, reading

from .specs import method, reconciler

#: A failing example is small enough as it is found; shrinking such trees would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


class Unprintable:
    """Refuses everything that a check might try on it; Hypothesis itself may print it between runs."""

    armed = False

    def __repr__(self) -> str:
        if Unprintable.armed:
            raise RuntimeError("no repr")
        return "Unprintable()"

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if Unprintable.armed:
            raise RuntimeError("no comparison")
        return self is other


@contextmanager
def armed() -> Iterator[None]:
    """Let :class:`Unprintable` refuse meanwhile."""
    Unprintable.armed = True
    try:
        yield
    finally:
        Unprintable.armed = False


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.binary(max_size=4),
    st.text(max_size=12),
    st.sampled_from(
        ["acme", "core", "acme/0001_a", "compute:acme:poke", "poke", "daemon.upgrade", "10m", "1.0", "plugins", "\x00"]
    ),
    st.builds(Unprintable),
    st.just(object),
    st.just(print),
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(st.text(max_size=4), inner)),
    max_leaves=4,
)


def several(entry: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly a sequence of entries, sometimes anything at all."""
    return st.one_of(st.lists(st.one_of(entry, anything), max_size=3).map(tuple), anything)


fields: dict[str, st.SearchStrategy[Any]] = {
    "name": anything,
    "path": anything,
    "label": anything,
    "plugin_id": anything,
    "requires": several(scalars),
    "migrations": several(scalars),
    "extensions": several(
        st.builds(Extension, anything, anything, anything, anything)  # type: ignore[arg-type]
    ),
    "methods": several(st.builds(method, anything, anything, anything, viewset=st.just(type("Group", (), {})))),
    "reconcilers": several(
        st.builds(
            reconciler,
            anything,
            shard_by=anything,
            role=anything,
            periodic=several(st.builds(Periodic, anything, anything)),
        )
    ),
    "command_kinds": several(
        st.builds(CommandKind, kind=anything, lane=anything, payload=anything, timeout=anything, roles=anything)
    ),
    "node_spec": anything,
    "status_handlers": several(st.builds(ModuleStatusHandler, anything, anything)),
    "catalog": st.one_of(
        st.builds(
            Catalog,
            several(scalars),
            st.one_of(anything, st.dictionaries(st.text(max_size=4), st.builds(ResourceType, anything))),
        ),
        anything,
    ),
    "commands": several(st.builds(CliCommand, name=anything, summary=anything, run=anything, arguments=anything)),
    "profiles": several(st.builds(ProfileDocument, anything, anything, anything)),
    "self_check": anything,
    "start": anything,
    "stop": anything,
    "tenant_deleted": anything,
}
specs = st.builds(ModuleSpec, **fields)


@given(st.lists(specs, max_size=3))
@settings(max_examples=30, deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
def test_random_specs_never_crash_the_checks(hosted: list[ModuleSpec]) -> None:
    with registry.override(*hosted), armed():
        for message in registry.problems():
            assert str(message)


@given(
    base=st.sampled_from([ComputeModule, ComputePlugin]),
    attributes=st.dictionaries(
        st.sampled_from(
            [
                "module_name",
                "requires",
                "catalog",
                "options",
                "api",
                "reconcilers",
                *sorted(fields.keys() - {"name", "path", "label", "plugin_id", "migrations", "methods"}),
            ]
        ),
        anything,
        max_size=6,
    ),
)
@settings(max_examples=30, deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
def test_random_config_classes_never_crash_the_checks(base: Any, attributes: dict[str, Any]) -> None:
    acme = apps.get_app_config("plg_acme")
    config = type("Odd", (base,), {"name": acme.name, "label": acme.label, **attributes})(acme.name, acme.module)
    with armed():
        for message in checking.problems_of([reading.read(config)]):
            assert str(message)


@given(anything)
@settings(max_examples=30, deadline=None, phases=PHASES)
def test_a_random_compute_setting_never_crashes_the_checks(compute: Any) -> None:
    with override_settings(COMPUTE=compute), armed():
        for message in registry.problems():
            assert str(message)
