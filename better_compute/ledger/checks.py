"""The rules of the graph of migrations, as Django system checks under a tag of their own.

``compute_migrate`` makes them itself, under its lock and as one refusal; ``manage.py check`` tells an author before.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.checks import CheckMessage, Error, register

from better_compute import registry
from better_compute.ledger import graph, owners
from better_compute.registry import ids

TAG: Final = "compute-migrations"


def graph_rules(**_: Any) -> list[CheckMessage]:
    """Report what is wrong with the dependencies of hosted modules' migrations, once no other rule is broken."""
    if any(message.is_serious() for message in registry.problems()):
        return []
    found: list[CheckMessage] = []
    for problem in graph.problems(owners.hosted(), graph.files()):
        what, _stop, mend = problem.partition(". ")
        found.append(Error(f"{what}.", hint=mend, id=ids.MIGRATION_GRAPH))
    return found


def install() -> None:
    """Register the checks with Django; called once the apps are ready."""
    register(graph_rules, TAG)
