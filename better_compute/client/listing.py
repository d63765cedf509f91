"""``--list`` of the command lines: the hosted methods, and of one method the fields that it takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from better_compute.client import shell
from better_compute.client.shapes import Shape


def methods(document: Mapping[str, Any], beginning: str) -> list[dict[str, str]]:
    """A row for each method whose name begins so, by name."""
    return [
        {"method": name, "kind": operation["x-compute"]["kind"], "summary": _summary(operation)}
        for name, operation in sorted(shell.methods(document).items())
        if name.startswith(beginning)
    ]


def fields(document: Mapping[str, Any], method: str) -> list[dict[str, str]]:
    """A row for each field of a method's input, required ones first."""
    shape = Shape.of_input(document, method)
    required = {name for each in shape.alternatives() for name in each.schema.get("required", ())}
    return [
        {"field": name, "type": shape.at(name).told(), "given": _given(shape.at(name), required=name in required)}
        for name in shell.fields(document, method)
    ]


def _summary(operation: Mapping[str, Any]) -> str:
    notice = operation["x-compute"].get("deprecated", "")
    return f"{operation.get('summary', '')} {notice}".strip()


def _given(field: Shape, *, required: bool) -> str:
    if required:
        return "required"
    return f"default {json.dumps(field.schema['default'])}" if "default" in field.schema else "optional"
