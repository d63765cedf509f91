"""The roles that every installation has. A tenant adds its own, named ``<tenant>/<name>``."""

from __future__ import annotations

from typing import Final

from .patterns import Patterns, Rights

OWNER: Final = "owner"

#: What is nobody's but the owner's: who may do what, and the tenant's own life.
_RESERVED: Final = (
    "compute:iam:manage",
    "compute:iam:manage-tenants",
    "compute:iam:break-glass",
    "compute:tenants:suspend",
    "compute:tenants:delete",
)

BUILT_IN: Final[dict[str, Rights]] = {
    OWNER: Rights(Patterns(("*",))),
    "operator": Rights(Patterns(("*",)), Patterns(_RESERVED)),
    "viewer": Rights(Patterns(("compute:*:read",))),
}

MEANING: Final = {
    OWNER: "Everything, who may do what included.",
    "operator": "Everything but who may do what, and the life of tenants.",
    "viewer": "Reading.",
}
