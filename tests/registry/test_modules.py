"""Names, plugin ids and requirements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from better_compute import __version__, registry
from better_compute.contract.errors import ComputeError

from .conftest import Write
from .specs import module, plugin, told

NAME = "^[a-z][a-z0-9-]{0,63}$"


@pytest.mark.parametrize("name", ["", "Gadgets", "1st", "a_b", "gadgets\n", "gädgets", "a\u0663", "a" * 65])
def test_a_module_name_matches_the_seeds_pattern_whole_and_in_ascii(name: str) -> None:
    assert told(module(name, path="host.gadgets")) == [
        (
            "compute.E001",
            f"Module {name!r}: its name does not match {NAME}.",
            "Set module_name on the AppConfig of host.gadgets to a name such as 'acme' or 'site-boot'.",
        )
    ]


def test_names_keep_the_seeds_hyphens() -> None:
    assert told(module("site-boot"), module("a" * 64)) == []


def test_two_modules_of_one_name_are_refused_naming_both_apps() -> None:
    assert told(module("gadgets"), module("gadgets", path="other.gadgets")) == [
        (
            "compute.E002",
            "Module 'gadgets': host.gadgets has the same name.",
            "Rename one of host.gadgets and other.gadgets, or remove one from INSTALLED_APPS.",
        )
    ]


def test_a_requirement_that_is_not_hosted_is_refused() -> None:
    assert told(module(requires=("inventory",))) == [
        (
            "compute.E003",
            "Module 'gadgets': it requires 'inventory', which is not hosted.",
            "Add that module's app to INSTALLED_APPS, or correct `requires`.",
        )
    ]


def test_a_requirement_may_be_hosted_in_any_position() -> None:
    assert told(module("gadgets", requires=("zeta",)), module("zeta", requires=("gadgets",))) == []


async def _nobody_awaits(ctx: object) -> list[object]:
    return []


@pytest.mark.parametrize(
    ("field", "function", "what", "called"),
    [
        ("self_check", lambda: [], "takes (), and is called with (ctx)", "ctx"),
        ("self_check", lambda ctx, more: [], "takes (ctx, more), and is called with (ctx)", "ctx"),
        ("self_check", _nobody_awaits, "is a coroutine, which nobody would await", "ctx"),
        ("start", lambda *, ctx: None, "takes (*, ctx), and is called with (ctx)", "ctx"),
        ("stop", lambda ctx: None, "takes (ctx), and is called with ()", ""),
        ("node_spec", lambda ctx: {}, "takes (ctx), and is called with (ctx, node)", "ctx, node"),
        ("tenant_deleted", lambda ctx: None, "takes (ctx), and is called with (ctx, tenant_id)", "ctx, tenant_id"),
    ],
)
def test_a_hook_that_could_not_be_called_is_refused(field: str, function: object, what: str, called: str) -> None:
    assert told(module(**{field: function})) == [
        ("compute.E005", f"Module 'gadgets': {field} {what}.", f"Define `def {field}({called})`.")
    ]


@pytest.mark.parametrize("function", [lambda *given: [], lambda ctx, more=(): [], print])
def test_a_hook_may_take_more_than_it_is_given(function: object) -> None:
    assert told(module(self_check=function)) == []


def test_a_plugin_without_a_well_formed_id_is_refused_once() -> None:
    assert told(plugin("Acme", label="plg_Acme")) == [
        (
            "compute.E004",
            f"Plugin 'Acme': its id 'Acme' does not match {NAME}.",
            "Set id on the AppConfig of host.Acme to a name such as 'acme'.",
        )
    ]


def test_a_plugin_keeps_the_label_that_follows_from_its_id() -> None:
    assert told(plugin("acme-blue", label="blue")) == [
        (
            "compute.E004",
            "Plugin 'acme-blue': its Django label is 'blue' instead of 'plg_acme_blue'.",
            "Remove label from the AppConfig of host.acme-blue; it follows from the id.",
        )
    ]


@pytest.mark.parametrize("id", ["then", "constructor", "plugins", "class"])
def test_a_plugin_whose_id_no_client_could_carry_is_refused(id: str) -> None:
    assert told(plugin(id)) == [
        (
            "compute.E004",
            f"Plugin {id!r}: its id {id!r} is reserved.",
            f"Set another id on the AppConfig of host.{id}; clients have it as the name of an attribute.",
        )
    ]


def test_two_plugins_of_one_id_are_refused() -> None:
    assert told(plugin("acme"), plugin("acme", name="acme-two", path="host.two")) == [
        (
            "compute.E004",
            "Plugin 'acme-two': its id 'acme' is also the id of plugin 'acme' (host.acme).",
            "Give one of the two another id; routes and actions are named by it.",
        )
    ]


@pytest.mark.parametrize("bounds", ["", ">=0.1,<99", "==1.0", "!=0.9", " >= 1.0.0 , <= 1 "])
def test_a_core_within_the_bounds_is_fine(bounds: str) -> None:
    assert told(module(core_versions=bounds)) == []


@pytest.mark.parametrize("bounds", [">=99", "<1", ">1.0", "<=0.9.9", "!=1.0.0", ">=1,<1"])
def test_a_core_outside_the_bounds_is_refused_with_both_versions(bounds: str) -> None:
    ((id, message, hint),) = told(module(core_versions=bounds))
    assert id == "compute.E006"
    assert message == f"Module 'gadgets': it works with better_compute {bounds}, and {__version__} is installed."
    assert hint == "Install a release of host.gadgets made for this core, or a core within these bounds."


@pytest.mark.parametrize("bounds", ["1.0", ">=", ">=1.x", ">=1,", "~=1.0", ">=1\u0663", 5])
def test_bounds_that_cannot_be_read_are_refused(bounds: object) -> None:
    ((id, message, hint),) = told(module(core_versions=bounds))
    assert id == "compute.E006"
    assert "is no bound such as '>=1.2' or '<2'" in message
    assert hint == "Write bounds such as core_versions = '>=1.2,<2'."


GADGETS = """
from better_compute import ComputePlugin

class Gadgets(ComputePlugin):
    name = "{path}"
    id = "gadgets"
"""


def test_two_apps_of_one_plugin_id_reach_the_check_that_names_both(write_app: Write, host: Callable[..., None]) -> None:
    source = {"apps.py": GADGETS, "models.py": "from django.db import models\nclass Gadget(models.Model): ..."}
    first, second = write_app(source), write_app(source)
    host(first, second)
    assert [(message.id, message.msg) for message in registry.problems()] == [
        ("compute.E002", f"Plugin 'gadgets': {first} has the same name."),
        ("compute.E004", f"Plugin 'gadgets': its id 'gadgets' is also the id of plugin 'gadgets' ({first})."),
    ]
    with pytest.raises(ComputeError, match=f"Rename one of {first} and {second}, or remove one from INSTALLED_APPS"):
        registry.current()


def test_two_modules_of_one_label_reach_the_check_that_names_both(write_app: Write, host: Callable[..., None]) -> None:
    module_of_its_label = """
from better_compute import ComputeModule

class Other(ComputeModule):
    name = "{path}"
    module_name = "other"
    label = "plg_gadgets"
"""
    first, second = write_app({"apps.py": module_of_its_label}), write_app({"apps.py": GADGETS})
    host(first, second)
    assert [(message.id, message.msg, message.hint) for message in registry.problems()] == [
        (
            "compute.E002",
            f"Plugin 'gadgets': its Django label 'plg_gadgets' is also that of module 'other' ({first}).",
            f"Set another label on the AppConfig of {second} or of {first}; tables are named by it.",
        )
    ]


def test_a_malformed_plugin_id_reaches_its_check(write_app: Write, host: Callable[..., None]) -> None:
    path = write_app(
        {
            "apps.py": """
from better_compute import ComputePlugin

class Gadgets(ComputePlugin):
    name = "{path}"
    id = "Gad Gets"
"""
        }
    )
    host(path)
    assert "compute.E004" in {message.id for message in registry.problems()}
