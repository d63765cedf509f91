"""The evaluator beside Cedar: the same policies, the same questions, the same answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import cedarpy
from hypothesis import given, settings, strategies as st

from compute_modules.iam.evaluation import Question, judge
from compute_modules.iam.facts import Changes, Facts, Grant, Tenant
from compute_modules.iam.patterns import Patterns, Rights, covers, meet, split
from compute_modules.iam.roles import BUILT_IN

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ACTIONS = tuple(f"compute:{area}:{verb}" for area in ("acme", "iam") for verb in ("read", "poke"))
PATTERNS = (*ACTIONS, "compute:acme:*", "compute:iam:*", "compute:*:read", "compute:*:poke", "*")
TREE = {"root": ("root",), "org": ("root", "org"), "own": ("root", "org", "own"), "far": ("root", "far")}
RESOURCES = (None, ("widget", "w1"), ("widget", "w2"))
PRINCIPALS = ("service/a", "service/b")

times = st.sampled_from([None, NOW - timedelta(hours=1), NOW, NOW + timedelta(hours=1)])
grants = st.builds(
    Grant,
    id=st.integers(0, 10**9).map(str),
    principal=st.sampled_from(PRINCIPALS),
    effect=st.sampled_from(["permit", "permit", "forbid"]),
    role=st.just(""),
    patterns=st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3).map(Patterns.of),
    tenant=st.sampled_from(sorted(TREE)),
    resource=st.sampled_from(RESOURCES),
    inherit=st.booleans(),
    starts_at=times,
    expires_at=times,
)
ceilings = st.dictionaries(
    st.sampled_from(sorted(TREE)), st.lists(st.sampled_from(PATTERNS), max_size=3).map(Patterns.of), max_size=2
)


def facts_of(granted: list[Grant], bounds: dict[str, Patterns]) -> Facts:
    tenants = tuple(Tenant(id, "organisation", path, bounds.get(id)) for id, path in TREE.items())
    return Facts().changed(Changes(tenants=tenants, grants=tuple(granted)), 1, "g")


def cedar_actions(patterns: Patterns) -> str:
    """The actions that exist and match, as Cedar names them."""
    named = ", ".join(f'Action::"{action}"' for action in ACTIONS if patterns.match(action))
    return f"action in [{named}]" if named else 'action == Action::"none"'


def cedar_policies(granted: list[Grant], bounds: dict[str, Patterns]) -> str:
    """Grants as permits and forbids; a ceiling forbids whatever it leaves out below its tenant."""
    policies = []
    for grant in granted:
        below = grant.inherit or grant.effect == "forbid"
        conditions = [f'context.tenant {"in" if below else "=="} Tenant::"{grant.tenant}"']
        if grant.resource is not None:
            conditions.append(f'context.resource == "{grant.resource[1]}"')
        if grant.starts_at is not None:
            conditions.append(f"context.now >= {int(grant.starts_at.timestamp())}")
        if grant.expires_at is not None:
            conditions.append(f"context.now < {int(grant.expires_at.timestamp())}")
        policies.append(
            f'{grant.effect}(principal == Principal::"{grant.principal}", {cedar_actions(grant.patterns)}, resource)'
            f" when {{ {' && '.join(conditions)} }};"
        )
    for tenant, patterns in bounds.items():
        within = [f"action == Action::{json.dumps(action)}" for action in ACTIONS if patterns.match(action)]
        policies.append(
            f'forbid(principal, action, resource) when {{ context.tenant in Tenant::"{tenant}" }}'
            f" unless {{ {' || '.join(within) or 'false'} }};"
        )
    return "\n".join(policies)


ENTITIES = [
    {
        "uid": {"type": "Tenant", "id": id},
        "attrs": {},
        "parents": [{"type": "Tenant", "id": path[-2]}] if len(path) > 1 else [],
    }
    for id, path in TREE.items()
]


@settings(max_examples=300, deadline=None)
@given(
    granted=st.lists(grants, max_size=6, unique_by=lambda grant: grant.id),
    bounds=ceilings,
    principal=st.sampled_from(PRINCIPALS),
    action=st.sampled_from(ACTIONS),
    tenant=st.sampled_from(sorted(TREE)),
    resource=st.sampled_from(RESOURCES),
)
def test_every_decision_is_cedars(
    granted: list[Grant],
    bounds: dict[str, Patterns],
    principal: str,
    action: str,
    tenant: str,
    resource: tuple[str, str] | None,
) -> None:
    ours = judge(facts_of(granted, bounds), Question(principal, action, tenant, NOW, resource))
    request = {
        "principal": f'Principal::"{principal}"',
        "action": f'Action::"{action}"',
        "resource": f'Tenant::"{tenant}"',
        "context": {
            "now": int(NOW.timestamp()),
            "tenant": {"__entity": {"type": "Tenant", "id": tenant}},
            "resource": resource[1] if resource else "",
        },
    }
    theirs = cedarpy.is_authorized(request, cedar_policies(granted, bounds), ENTITIES)
    assert not theirs.diagnostics.errors, theirs.diagnostics.errors
    assert ours.allowed is theirs.allowed


@given(wide=st.sampled_from(PATTERNS), narrow=st.sampled_from(PATTERNS))
def test_covering_is_matching_everything_the_other_matches(wide: str, narrow: str) -> None:
    # Actions of areas and verbs that do not exist yet are among what a pattern matches.
    every = [f"compute:{area}:{verb}" for area in ("acme", "iam", "new") for verb in ("read", "poke", "new")]
    matched = [action for action in every if Patterns.of([narrow]).match(action)]
    assert covers(wide, narrow) is all(Patterns.of([wide]).match(action) for action in matched)
    assert meet(wide, narrow) is any(Patterns.of([wide]).match(action) for action in matched)


@given(texts=st.lists(st.sampled_from(PATTERNS), max_size=4), action=st.sampled_from(ACTIONS))
def test_a_set_of_patterns_matches_what_one_of_them_covers(texts: list[str], action: str) -> None:
    assert Patterns.of(texts).match(action) is any(covers(text, action) for text in texts)


@given(text=st.text(max_size=30))
def test_what_is_no_pattern_is_refused_whole(text: str) -> None:
    try:
        area, verb = split(text)
    except ValueError:
        return
    assert text == "*" or text == f"compute:{area}:{verb}"
    assert "\n" not in text


def test_the_owner_has_all_and_no_other_built_in_role_may_manage() -> None:
    assert all(BUILT_IN["owner"].match(action) for action in ACTIONS)
    for role, rights in BUILT_IN.items():
        assert rights.match("compute:iam:manage") is (role == "owner")
        assert rights.match("compute:tenants:delete") is (role == "owner")
    assert isinstance(BUILT_IN["viewer"], Rights)
