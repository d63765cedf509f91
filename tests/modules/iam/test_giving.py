"""The rule of giving beside the evaluator: whatever a gift that is allowed lets somebody do, its giver could do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

from hypothesis import assume, event, given, settings, strategies as st

from compute_modules.iam.evaluation import Narrowing, Question, judge
from compute_modules.iam.facts import Changes, Facts, Grant, Tenant
from compute_modules.iam.giving import BREAK_GLASS, Gift, exceeding
from compute_modules.iam.patterns import Patterns, Rights

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOURS = (0, 1, 2)
MOMENTS = [NOW + timedelta(hours=hours, minutes=30) for hours in (*HOURS, 3)]
#: Actions that exist, and one that does not yet.
ACTIONS = ("compute:acme:read", "compute:acme:poke", "compute:new:read", "compute:iam:manage", BREAK_GLASS)
PATTERNS = (*ACTIONS, "compute:acme:*", "compute:iam:*", "compute:*:read", "*")
TREE = {"root": ("root",), "org": ("root", "org"), "own": ("root", "org", "own"), "far": ("root", "far")}
RESOURCES = (None, ("widget", "w1"), ("widget", "w2"))
GIVER, MAKER, TAKER = "service/giver", "service/maker", "service/taker"

ends = st.sampled_from([None, None, *(NOW + timedelta(hours=hours) for hours in (1, 2))])
patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2).map(Patterns.of)
rights = st.builds(Rights, patterns, st.lists(st.sampled_from(PATTERNS[:-1]), max_size=1).map(Patterns.of))
ROLES = {"owner": Rights(Patterns(("*",))), "most": Rights(Patterns(("*",)), Patterns(("compute:acme:poke",)))}


def grants(*principals: str) -> st.SearchStrategy[Grant]:
    """Mostly wide ones, so that something can be given at all."""
    return st.builds(
        Grant,
        id=st.integers(0, 10**9).map(str),
        principal=st.sampled_from(principals),
        effect=st.sampled_from(["permit"] * 5 + ["forbid"]),
        role=st.just(""),
        patterns=patterns,
        tenant=st.sampled_from(sorted(TREE)),
        resource=st.sampled_from([None, None, None, RESOURCES[1]]),
        inherit=st.booleans(),
        starts_at=st.sampled_from([None, None, None, NOW + timedelta(hours=1)]),
        expires_at=ends,
    ).map(lambda grant: replace(grant, role="owner", patterns=Patterns()) if _by_role(grant) else grant)


def _by_role(grant: Grant) -> bool:
    return grant.effect == "permit" and grant.patterns.texts[0] == "*"


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Facts, Narrowing]:
    """What the giver and a maker hold, and the credential the giver calls with."""
    held = draw(st.lists(grants(GIVER, GIVER, MAKER), max_size=5, unique_by=lambda grant: grant.id))
    ceilings = draw(st.dictionaries(st.sampled_from(sorted(TREE)), patterns, max_size=1))
    tenants = tuple(Tenant(id, "organisation", path, ceilings.get(id)) for id, path in TREE.items())
    facts = Facts().changed(Changes(tenants=tenants, roles=tuple(ROLES.items()), grants=tuple(held)), 1, "g")
    narrowed = Narrowing(
        tenant_id=draw(st.sampled_from([None, None, None, "org", "own"])),
        actions=draw(st.none() | st.none() | st.none() | patterns),
        expires_at=draw(st.none() | st.none() | ends),
        carried=tuple(draw(st.lists(grants(GIVER), max_size=1))),
        makers=draw(st.sampled_from([(), (), (), (MAKER,)])),
    )
    return facts, narrowed


@st.composite
def cases(draw: st.DrawFn) -> tuple[Facts, Narrowing, Gift]:
    """A world and a gift, mostly one like what the giver holds, with one thing or another of it changed."""
    facts, narrowed = draw(worlds())
    own = facts.holdings.get(GIVER)
    permits = [grant for grant in own.by_id.values() if grant.effect == "permit"] if own else []
    like = draw(st.sampled_from([*permits, *narrowed.carried])) if permits or narrowed.carried else draw(grants(GIVER))
    change = draw(st.sets(st.sampled_from(["rights", "tenant", "inherit", "resource", "end"]), max_size=1))
    resource = draw(st.sampled_from(RESOURCES)) if "resource" in change else like.resource
    inherit = draw(st.booleans()) if "inherit" in change else like.inherit
    gift = Gift(
        draw(rights) if "rights" in change else facts.rights(like),
        draw(st.sampled_from(sorted(TREE))) if "tenant" in change else like.tenant,
        inherit and resource is None,
        resource,
        draw(ends) if "end" in change else like.expires_at,
    )
    return facts, narrowed, gift


def can(facts: Facts, question: Question) -> bool:
    """Whether the principal may do it with its credential, at once or by breaking the glass first."""
    narrowed = question.narrowed or Narrowing()
    if narrowed.expires_at is not None and question.at >= narrowed.expires_at:
        return False
    if judge(facts, question).allowed:
        return True
    if not judge(facts, replace(question, action=BREAK_GLASS, resource=None)).allowed:
        return False
    broken = [
        Grant(f"glass/{who}", who, "permit", "owner", Patterns(), question.tenant, None, False, None, None)
        for who in (question.principal, *narrowed.makers)
    ]
    return judge(facts.changed(Changes(grants=tuple(broken)), 2, "g"), question).allowed


def asked(at: datetime) -> list[tuple[str, str, tuple[str, str] | None]]:
    return list(product(ACTIONS, TREE, RESOURCES))


@settings(max_examples=400, deadline=None)
@given(case=cases())
def test_no_gift_lets_anybody_do_what_its_giver_could_not_do_there_and_then(
    case: tuple[Facts, Narrowing, Gift],
) -> None:
    facts, narrowed, gift = case
    refused = exceeding(facts, GIVER, gift, NOW, narrowed) is not None
    event("refused" if refused else "given")
    if refused:
        return
    taken = Grant(
        "gift", TAKER, "permit", "gift", Patterns(), gift.tenant, gift.resource, gift.inherit, None, gift.expires_at
    )
    after = facts.changed(Changes(roles=(("gift", gift.rights),), grants=(taken,)), 2, "g")
    for at in MOMENTS:
        for action, tenant, resource in asked(at):
            question = Question(TAKER, action, tenant, at, resource)
            if can(after, question):
                assert can(facts, replace(question, principal=GIVER, narrowed=narrowed)), (at, action, tenant, resource)


@settings(max_examples=100, deadline=None)
@given(held=st.lists(grants(GIVER), min_size=1, max_size=4, unique_by=lambda grant: grant.id))
def test_what_one_holds_one_may_give(held: list[Grant]) -> None:
    """The rule is no stricter than it must be: a copy of one's own grant, unless it needs all to be given."""
    assume(all(grant.effect == "permit" for grant in held))
    tenants = tuple(Tenant(id, "organisation", path) for id, path in TREE.items())
    facts = Facts().changed(Changes(tenants=tenants, roles=tuple(ROLES.items()), grants=tuple(held)), 1, "g")
    for grant in held:
        conveyed = facts.rights(grant)
        if grant.active(NOW) and ("*" in conveyed.permits.texts or not conveyed.match(BREAK_GLASS)):
            gift = Gift(conveyed, grant.tenant, grant.inherit, grant.resource, grant.expires_at)
            assert exceeding(facts, GIVER, gift, NOW) is None


@settings(max_examples=100, deadline=None)
@given(world=worlds())
def test_a_token_is_worth_no_more_than_its_account_nor_than_its_makers(world: tuple[Facts, Narrowing]) -> None:
    facts, narrowed = world
    scoped = replace(narrowed, carried=(), makers=(MAKER,))
    for action, tenant, resource in asked(NOW):
        question = Question(GIVER, action, tenant, NOW, resource)
        if judge(facts, replace(question, narrowed=scoped)).allowed:
            assert judge(facts, question).allowed
            assert judge(facts, replace(question, principal=MAKER)).allowed
