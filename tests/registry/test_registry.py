"""The registry as a whole: order, conditions, refusal, freezing."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import Client, override_settings
from django.urls import clear_url_caches
from hypothesis import given, strategies

from better_compute import ComputeError, ErrorCode, registry
from better_compute.registry.order import BUILT_IN, hosted_order

from .conftest import APPS, Write
from .specs import method, module, plugin, reconciler


def test_core_comes_first_then_built_ins_in_the_seeds_order_then_users_modules_then_plugins() -> None:
    specs = [
        plugin("zeta"),
        module("zoo"),
        module("capacity"),
        module("core"),
        plugin("acme"),
        module("ape"),
        module("audit-sinks"),
        module("node-controllers"),
    ]
    with registry.override(*specs):
        assert [spec.name for spec in registry.current().modules] == [
            "core",
            "node-controllers",
            "capacity",
            "audit-sinks",
            "zoo",
            "ape",
            "zeta",
            "acme",
        ]


@given(strategies.randoms(use_true_random=False))
def test_built_ins_come_in_the_seeds_order_however_they_are_installed(chance: random.Random) -> None:
    shuffled = ["core", *BUILT_IN]
    chance.shuffle(shuffled)
    assert [spec.name for spec in hosted_order(module(name) for name in shuffled)] == ["core", *BUILT_IN]


def test_a_plugin_named_like_a_built_in_still_comes_last() -> None:
    with registry.override(plugin("pki"), module("zoo")):
        assert [spec.name for spec in registry.current().modules] == ["zoo", "pki"]


def test_all_problems_of_all_modules_are_told_at_once_by_check_and_by_refusal() -> None:
    bad = [module("Bad"), module("worse", requires=("nothing",)), plugin("acme", methods=(method(),))]
    with registry.override(*bad):
        told = [message.id for message in run_checks(tags=["compute"])]
        assert told == ["compute.E001", "compute.E003", "compute.E045"]
        with pytest.raises(ComputeError) as refused:
            registry.current()
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    for part in ("compute.E001", "'Bad'", "compute.E003", "'worse'", "compute.E045", "'acme'", "Add the action"):
        assert part in refused.value.message


def test_check_for_one_app_shows_what_concerns_it() -> None:
    from django.apps import apps

    config = apps.get_app_config("plg_acme")
    with registry.override(module("Bad"), plugin("acme", path=config.name, requires=("nothing",))):
        assert [message.id for message in run_checks(app_configs=[config], tags=["compute"])] == ["compute.E003"]


def test_an_override_ends_with_its_block() -> None:
    before = [spec.name for spec in registry.current().modules]
    with registry.override(module("gadgets")):
        assert [spec.name for spec in registry.current().modules] == ["gadgets"]
        with registry.override(module("other")):
            assert [spec.name for spec in registry.current().modules] == ["other"]
        assert [spec.name for spec in registry.current().modules] == ["gadgets"]
    assert [spec.name for spec in registry.current().modules] == before


def test_the_registry_of_before_is_there_again_after_an_override() -> None:
    before = registry.current()
    with registry.override(module("gadgets")):
        assert registry.current() is not before
    assert registry.current() is before


def test_settings_that_changed_inside_an_override_are_read_after_it() -> None:
    before = registry.current()
    with registry.override(module("gadgets")), override_settings(COMPUTE={}):
        registry.current()
    assert registry.current() is not before


def test_the_registry_is_built_once_and_cannot_be_changed() -> None:
    assert registry.current() is registry.current()
    with pytest.raises(TypeError):
        registry.current().methods["x"] = None  # type: ignore[index]


def test_a_module_that_is_not_hosted_is_not_found_naming_those_that_are() -> None:
    with registry.override(module("gadgets")), pytest.raises(ComputeError) as refused:
        registry.current().module("widgets")
    assert str(refused.value) == "NOT_FOUND: No hosted module is named 'widgets'. Hosted are: gadgets."


def test_the_fingerprint_tells_sets_of_modules_apart() -> None:
    sets = [
        (),
        (module("gadgets"),),
        (module("gadgets", migrations=("gadgets/0001_a",)),),
        (module("gadgets", reconcilers=(reconciler(),)),),
        (module("gadgets"), module("more")),
    ]
    found = set()
    for specs in sets:
        with registry.override(*specs):
            found.add(registry.current().fingerprint)
    assert len(found) == len(sets)


def test_a_conditional_module_is_hosted_only_when_its_condition_holds(
    write_app: Write, host: Callable[..., None]
) -> None:
    absent = write_app(
        {"apps.py": APPS.replace('"gadgets"', '"tunnels"') + "        hosted = classmethod(lambda cls: False)\n"}
    )
    present = write_app(
        {"apps.py": APPS.replace('"gadgets"', '"pki"') + "        hosted = classmethod(lambda cls: True)\n"}
    )
    host("better_compute", absent, present)
    assert [spec.name for spec in registry.current().modules] == ["core", "pki"]


def test_a_condition_that_raises_is_a_problem_of_its_module(write_app: Write, host: Callable[..., None]) -> None:
    path = write_app({"apps.py": APPS + "        hosted = classmethod(lambda cls: 1 / 0)\n"})
    host("better_compute", path)
    assert [(message.id, message.msg, message.hint) for message in registry.problems()] == [
        (
            "compute.E005",
            "Module 'gadgets': hosted() raised ZeroDivisionError('division by zero').",
            "Let hosted() return whether the module is hosted, from the settings alone.",
        )
    ]


def test_a_sink_that_another_module_brings_is_seen_by_a_condition(write_app: Write, host: Callable[..., None]) -> None:
    sinks = APPS.replace('"gadgets"', '"audit-sinks"') + (
        "        @classmethod\n"
        "        def hosted(cls):\n"
        "            from better_compute import registry\n"
        "            return any(each.kind == 'audit-sink' for each in registry.listed_extensions())\n"
    )
    audit_sinks = write_app({"apps.py": sinks})
    vault = write_app(
        {
            "apps.py": APPS.replace('"gadgets"', '"vault"'),
            "extensions.py": """
                from better_compute import define_audit_sink
                extensions = [define_audit_sink("vault", version="1", sink=object())]
            """,
        }
    )
    host("better_compute", audit_sinks)
    assert [spec.name for spec in registry.current().modules] == ["core"]
    host("better_compute", audit_sinks, vault)
    assert [spec.name for spec in registry.current().modules] == ["core", "audit-sinks", "vault"]


def test_check_lists_what_is_broken_although_the_urls_need_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "example_project.urls", raising=False)
    clear_url_caches()
    with override_settings(COMPUTE={"RATES": {}}, ROOT_URLCONF="example_project.urls"):
        with pytest.raises(SystemCheckError, match=r"compute\.E070\) COMPUTE\['RATES'\] in the settings is no key"):
            call_command("check")
        answer = Client().post("/api/compute/system/version", b"{}", content_type="application/json")
    clear_url_caches()
    assert (answer.status_code, answer.json()["mend"]) == (
        500,
        "Tell the operator that `manage.py check` says what is wrong.",
    )
