"""Actions and resource types of the merged catalog, and the method table."""

from __future__ import annotations

from typing import Any

import pytest

from better_compute import Catalog, ResourceType

from .specs import method, module, plugin, told

ACTION = "^compute:([a-z][a-z0-9-]{0,63}):([a-z][a-z0-9-]{0,63})$"
TENANT = ResourceType(resolve=lambda sql, id: None)


@pytest.mark.parametrize("action", ["poke", "compute:acme", "compute:acme:Poke", "compute:acme:poke\n", "x:acme:poke"])
def test_an_action_matches_the_seeds_pattern(action: str) -> None:
    assert told(plugin(catalog=Catalog(actions=[action]))) == [
        (
            "compute.E043",
            f"Plugin 'acme': action {action!r} does not match {ACTION}.",
            "Write it as compute:<area>:<verb>, e.g. 'compute:acme:read'.",
        )
    ]


def test_a_plugins_actions_stand_in_its_own_area() -> None:
    assert told(plugin(catalog=Catalog(actions=["compute:fleet:poke"]))) == [
        (
            "compute.E044",
            "Plugin 'acme': action 'compute:fleet:poke' is not in the plugin's own area.",
            "A plugin's actions are compute:acme:<verb>.",
        )
    ]


def test_a_modules_actions_may_stand_in_any_area() -> None:
    assert told(module(catalog=Catalog(actions=["compute:fleet:poke"]))) == []


def test_a_method_names_an_action_of_the_merged_catalog() -> None:
    assert told(plugin(methods=(method(),))) == [
        (
            "compute.E045",
            "Plugin 'acme': method 'poke' of group 'widgets' names action 'compute:acme:poke', which no hosted "
            "module's catalog holds.",
            "Add the action to this module's catalog, or correct it in compute_method().",
        )
    ]


def test_a_method_may_name_another_modules_action() -> None:
    catalog = Catalog(actions=["compute:fleet:read"])
    assert told(module(catalog=catalog), plugin(methods=(method(action="compute:fleet:read"),))) == []


def test_an_action_is_declared_once() -> None:
    catalog = Catalog(actions=["compute:fleet:read"])
    assert told(module(catalog=catalog), module("more", catalog=catalog)) == [
        (
            "compute.E046",
            "Module 'more': action 'compute:fleet:read' is also declared by module 'gadgets'.",
            "Declare it once; methods of every module may name it.",
        )
    ]


def test_a_resource_type_is_declared_once() -> None:
    catalog = Catalog(resource_types={"widget": TENANT})
    assert told(module(catalog=catalog), module("more", catalog=catalog)) == [
        (
            "compute.E046",
            "Module 'more': resource type 'widget' is also declared by module 'gadgets'.",
            "Declare it once, in the module that owns the records.",
        )
    ]


@pytest.mark.parametrize(
    ("name", "kind", "message", "mend"),
    [
        (
            "Widget",
            TENANT,
            "'Widget' does not match ^[a-z][a-z0-9-]{0,63}$.",
            "Give it a name such as 'widget'.",
        ),
        ("tenant", TENANT, "'tenant' is built in.", "Remove it from the catalog and use it as it is."),
        ("system", TENANT, "'system' is built in.", "Remove it from the catalog and use it as it is."),
        ("widget", "w", "'widget' is 'w', which is no ResourceType.", "Write ResourceType(resolve=...)."),
        (
            "widget",
            ResourceType(resolve=None),  # type: ignore[arg-type]
            "'widget' has resolve=None, which is no function.",
            "Write `def resolve(sql, id): ...`.",
        ),
    ],
)
def test_a_malformed_resource_type_is_refused(name: str, kind: Any, message: str, mend: str) -> None:
    assert told(module(catalog=Catalog(resource_types={name: kind}))) == [
        ("compute.E048", f"Module 'gadgets': resource type {message}", mend)
    ]


def test_a_modules_method_without_a_row_in_the_table_is_undeclared() -> None:
    spec = module(
        catalog=Catalog(actions=["compute:fleet:read"]),
        methods=(method(action="compute:fleet:read", module="gadgets", plugin_id=None),),
    )
    assert told(spec) == [
        (
            "compute.W073",
            "Module 'gadgets': method widgets.poke has no row in the method table.",
            "Ship third-party code as a plugin; a built-in method needs a row in contract/methods.toml.",
        )
    ]


def test_a_plugins_method_needs_no_row() -> None:
    assert told(plugin(catalog=Catalog(actions=["compute:acme:poke"]), methods=(method(),))) == []
