"""The method table (``contract/methods.toml``): normative for the core's and the built-in modules' methods."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from better_compute.contract.methods import MethodKind


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One method of the table.

    ``method`` is the dotted name on the wire (``system.selfCheck``) and ``resource`` the type that the
    method acts on: ``tenant``, ``system`` or one of the catalog's.
    """

    method: str
    action: str
    kind: MethodKind
    resource: str
    #: The module that brings it, for one that an installation may do without; its rows count only where it is hosted.
    module: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    method: tuple[Row, ...] = ()


@cache
def rows() -> tuple[Row, ...]:
    """Every row of the table in its order; empty when the package ships none."""
    file = resources.files("better_compute.contract") / "methods.toml"
    return msgspec.toml.decode(file.read_bytes(), type=_Table).method if file.is_file() else ()
