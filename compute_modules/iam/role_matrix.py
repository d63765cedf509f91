"""The port ``role-matrix``: what each built-in role may do where, asked of the evaluator itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from better_compute import ErrorCode, ModuleContext

from .evaluation import Question, judge
from .facts import Changes, Facts, Grant, Tenant
from .patterns import Patterns
from .roles import BUILT_IN

#: A tree in which every relation to ``own`` exists, and what to ask about for each.
_TREE: Final = (
    Tenant("root", "root", ("root",)),
    Tenant("parent", "organisation", ("root", "parent")),
    Tenant("own", "organisation", ("root", "parent", "own")),
    Tenant("below", "project", ("root", "parent", "own", "below")),
    Tenant("sibling", "project", ("root", "parent", "sibling")),
    Tenant("foreign", "project", ("root", "foreign")),
)
RELATIONS: Final = ("own", "below", "parent", "sibling", "foreign")
_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)
_WHO: Final = "service/somebody"


@dataclass(frozen=True, slots=True)
class RoleMatrixPort:
    """See :class:`better_compute.contract.principals.RoleMatrix`. The role is granted in ``own``, with `inherit`."""

    ctx: ModuleContext

    def roles(self) -> Sequence[str]:
        """The built-in ones."""
        return tuple(BUILT_IN)

    def relations(self) -> Sequence[str]:
        """How the tenant of a call may stand to the one in which the role is granted."""
        return RELATIONS

    def outcome(self, role: str, action: str, relation: str, *, installation: bool) -> str:
        """``allowed``, or the code of the refusal.

        What acts on the installation is judged at the root, so ``own`` means a role granted there, and every other
        relation a role granted elsewhere.
        """
        granted_at = "root" if installation and relation == "own" else "own"
        asked_at = "root" if installation else relation
        verdict = judge(_facts(role, granted_at), Question(_WHO, action, asked_at, _AT))
        if verdict.allowed:
            return "allowed"
        return (ErrorCode.ACCESS_DENIED if verdict.visible or installation else ErrorCode.NOT_FOUND).value


def _facts(role: str, tenant: str) -> Facts:
    grant = Grant("g", _WHO, "permit", role, Patterns(), tenant, None, True, None, None)
    return Facts().changed(Changes(tenants=_TREE, grants=(grant,)), 1, "g")
