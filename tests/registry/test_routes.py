"""Routes: names in both forms, reserved ones, uniqueness."""

from __future__ import annotations

import pytest

from better_compute import Catalog

from .specs import method, plugin, told

ROUTE = "^[A-Za-z][A-Za-z0-9_-]{0,63}$"
ACME = Catalog(actions=["compute:acme:poke"])
RESERVED = ("then", "catch", "finally", "toJSON", "constructor", "prototype", "__proto__", "plugins")


def acme(*methods: object) -> object:
    return plugin(catalog=ACME, methods=methods)


@pytest.mark.parametrize("name", ["1st", "", "pöke", "poke\n", "a" * 65, "_hidden"])
def test_a_method_name_matches_the_seeds_pattern(name: str) -> None:
    assert told(acme(method(name))) == [
        (
            "compute.E040",
            f"Plugin 'acme': method {name!r} of group 'widgets' does not match {ROUTE}.",
            "Rename the method: a letter, then up to 63 ASCII letters, digits, '_' or '-'.",
        )
    ]


def test_a_group_name_matches_the_seeds_pattern_and_is_told_once() -> None:
    assert told(acme(method("poke", group="1st"), method("prod", group="1st"))) == [
        (
            "compute.E040",
            f"Plugin 'acme': group '1st' does not match {ROUTE}.",
            "Rename the group: a letter, then up to 63 ASCII letters, digits, '_' or '-'.",
        )
    ]


@pytest.mark.parametrize("name", [name for name in RESERVED if name != "__proto__"])
def test_a_reserved_method_name_is_refused(name: str) -> None:
    assert told(acme(method(name))) == [
        (
            "compute.E041",
            f"Plugin 'acme': method {name!r} of group 'widgets' is reserved.",
            "Rename the method; clients cannot carry __proto__, catch, constructor, finally, plugins, prototype, "
            "then, toJSON.",
        )
    ]


@pytest.mark.parametrize(("name", "wire"), [("to_JSON", "toJSON"), ("then_", "then")])
def test_a_name_that_is_reserved_only_on_the_wire_is_refused(name: str, wire: str) -> None:
    assert told(acme(method(name))) == [
        (
            "compute.E041",
            f"Plugin 'acme': method {name!r} of group 'widgets' ({wire!r} on the wire) is reserved.",
            "Rename the method; clients cannot carry __proto__, catch, constructor, finally, plugins, prototype, "
            "then, toJSON.",
        )
    ]


def test_a_group_named_plugins_is_refused() -> None:
    assert [(id, message) for id, message, _ in told(acme(method(group="plugins")))] == [
        ("compute.E041", "Plugin 'acme': group 'plugins' is reserved.")
    ]


def test_two_methods_with_one_wire_form_are_refused() -> None:
    assert told(acme(method("self_check"), method("selfCheck"))) == [
        (
            "compute.E042",
            "Plugin 'acme': route 'plugins/acme/widgets/selfCheck' of Widgets.selfCheck is also that of "
            "Widgets.self_check in plugin 'acme'.",
            "Rename one of the two methods or its group.",
        )
    ]


def test_one_group_name_in_two_plugins_is_no_clash() -> None:
    other = plugin(
        "beta",
        catalog=Catalog(actions=["compute:beta:poke"]),
        methods=(method(action="compute:beta:poke", module="beta", plugin_id="beta"),),
    )
    assert told(acme(method()), other) == []
