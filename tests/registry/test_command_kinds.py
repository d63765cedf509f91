"""Command kinds sent to agents."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.empty_pb2 import Empty

from better_compute import CommandKind

from .specs import module, plugin, told


def kind(**fields: Any) -> CommandKind:
    return CommandKind(**{"kind": "daemon.upgrade", "lane": "control", "payload": Empty, "timeout": "15m", **fields})


@pytest.mark.parametrize(
    ("fields", "message", "mend"),
    [
        (
            {"kind": "upgrade"},
            "'upgrade' does not match ^[a-z][a-z0-9-]{0,31}(\\.[a-z][a-z0-9-]{0,31}){1,3}$.",
            "Name it like 'daemon.upgrade'.",
        ),
        ({"lane": "fast"}, "'daemon.upgrade' has lane 'fast'.", "Choose one of control, work, bulk."),
        ({"roles": ()}, "'daemon.upgrade' has roles ().", "List one or both of node, site."),
        ({"roles": "node"}, "'daemon.upgrade' has roles 'node'.", "List one or both of node, site."),
        ({"roles": ("hub",)}, "'daemon.upgrade' has roles ('hub',).", "List one or both of node, site."),
        (
            {"timeout": "soon"},
            "'daemon.upgrade' has a malformed timeout: 'soon' is no duration; write a number and a unit "
            "(ms, s, m, h, d), e.g. '10m'.",
            "Write it like timeout='15m'.",
        ),
        (
            {"timeout": "0s"},
            "'daemon.upgrade' has timeout '0s', which is not positive.",
            "Write it like timeout='15m'.",
        ),
        (
            {"payload": dict},
            "'daemon.upgrade' has payload <class 'dict'>, which is no protobuf message class.",
            "Give the generated class.",
        ),
    ],
)
def test_a_malformed_command_kind_is_refused(fields: dict[str, Any], message: str, mend: str) -> None:
    assert told(module(command_kinds=(kind(**fields),))) == [
        ("compute.E030", f"Module 'gadgets': command kind {message}", mend)
    ]


def test_what_is_no_command_kind_is_refused() -> None:
    assert told(module(command_kinds=("daemon.upgrade",))) == [
        (
            "compute.E030",
            "Module 'gadgets': command kind 'daemon.upgrade' is no CommandKind.",
            "Declare it as CommandKind(kind=..., lane=..., ...).",
        )
    ]


def test_a_kind_that_a_built_in_module_declares_is_refused_elsewhere() -> None:
    assert told(plugin(command_kinds=(kind(),)), module("node-controllers", command_kinds=(kind(),))) == [
        (
            "compute.E031",
            "Plugin 'acme': command kind 'daemon.upgrade' is also declared by module 'node-controllers'.",
            "Name it after your own module, e.g. 'acme.upgrade'.",
        )
    ]


def test_a_kind_declared_twice_in_one_module_is_refused() -> None:
    assert [id for id, _, _ in told(module(command_kinds=(kind(), kind())))] == ["compute.E031"]
