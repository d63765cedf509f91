"""Cedar, in process: the policies of one principal, written as the grants say them, and the tenants on the way."""

from __future__ import annotations

import time
from collections.abc import Sequence

import cedarpy

from compute_modules.iam.evaluation import Question
from compute_modules.iam.facts import Facts, Grant

CONFIGURATION = (
    "cedarpy.is_authorized in process; policies of the asked principal only, entities of the asked tenant's line only, "
    "both made before the clock starts; no statement to a database"
)


def policies(facts: Facts, grants: Sequence[Grant], actions: Sequence[str]) -> str:
    """One policy for each grant, over the actions that exist."""
    written = []
    for grant in grants:
        named = ", ".join(f'Action::"{action}"' for action in actions if facts.rights(grant).match(action))
        below = grant.inherit or grant.effect == "forbid"
        where = f'resource {"in" if below else "=="} Tenant::"{grant.tenant}"'
        written.append(f'{grant.effect}(principal == Principal::"{grant.principal}", action in [{named}], {where});')
    return "\n".join(written)


class Asked:
    """A question with its policy slice, ready to be put to Cedar."""

    def __init__(self, facts: Facts, question: Question, actions: Sequence[str]) -> None:
        holdings = facts.holdings[question.principal]
        path = facts.path(question.tenant)
        line = [grant for grant in holdings.by_id.values() if grant.tenant in path]
        self.policies = policies(facts, line, actions)
        self.entities = [
            {
                "uid": {"type": "Tenant", "id": place},
                "attrs": {},
                "parents": [{"type": "Tenant", "id": above}] if above else [],
            }
            for above, place in zip((None, *path[:-1]), path, strict=True)
        ]
        self.request = {
            "principal": f'Principal::"{question.principal}"',
            "action": f'Action::"{question.action}"',
            "resource": f'Tenant::"{question.tenant}"',
            "context": {},
        }

    def allowed(self) -> bool:
        """Cedar's answer."""
        return bool(cedarpy.is_authorized(self.request, self.policies, self.entities).allowed)


def decisions_per_second(asked: Sequence[Asked]) -> float:
    """Every question once."""
    began = time.perf_counter()
    for each in asked:
        each.allowed()
    return len(asked) / (time.perf_counter() - began)
