"""Chains of real calls by many callers: no step gives anybody what neither it nor its caller could do, at any time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count, product
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings, strategies as st

from better_compute import ComputeError, Principal, compute
from better_compute.store import transaction
from compute_modules.iam import presented
from compute_modules.iam.evaluation import Narrowing, Question, judge, narrowing
from compute_modules.iam.facts import Changes, Facts, Grant
from compute_modules.iam.giving import BREAK_GLASS
from compute_modules.iam.patterns import Patterns
from compute_modules.iam.projection import projection
from tests.modules.iam.conftest import OPERATOR, rows, service, tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

_numbers = count()
PEOPLE = ("ann", "ben", "cid")
PLACES = ("org", "own")
ACTIONS = ("compute:acme:read", "compute:acme:poke", "compute:iam:manage", "compute:iam:manage-tokens", BREAK_GLASS)
PATTERNS = (
    "compute:acme:read",
    "compute:acme:*",
    "compute:iam:*",
    "compute:iam:manage",
    "compute:iam:manage-tokens",
    "*",
)
LATER = tuple(timedelta(minutes=minutes) for minutes in (0, 20, 45, 90, 10_000_000))

ends = st.sampled_from([None, None, 30, 60])
what = st.one_of(
    st.sampled_from(["owner", "owner", "operator", "viewer", "role"]).map(lambda role: {"role": role}),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2, unique=True).map(lambda found: {"actions": found}),
)
given_to = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PLACES), what, st.booleans(), ends)
#: (which call, which caller, three numbers that choose among what there is, a gift)
steps = st.tuples(
    st.sampled_from(
        ["give", "give", "token", "token", "rotate", "role", "ceiling", "glass", "lift", "enable", "trusted"]
    ),
    st.integers(0, 30),
    st.integers(0, 30),
    given_to,
)


@dataclass
class World:
    """One organisation with a project, its people, and the secrets that were handed out."""

    mark: str
    secrets: list[str] = field(default_factory=list)
    #: Who had a hand in getting a secret, by the secret.
    holders: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def make(cls) -> World:
        world = cls(f"n{next(_numbers)}")
        tenant(world.place("org"), "root", "organisation")
        tenant(world.place("own"), world.place("org"))
        # Somebody owns it for good, so that nobody below is the last owner.
        service(f"{world.mark}-lasting", home=world.place("org"))
        lasting = {"tenantId": world.place("org"), "principal": world.who("lasting"), "role": "owner", "inherit": True}
        compute.api.grants.create(OPERATOR, lasting)
        for name in PEOPLE:
            service(f"{world.mark}-{name}", home=world.place("own"))
        role = {"tenantId": world.place("org"), "name": "role", "permits": ["compute:acme:read"]}
        compute.api.roles.create(OPERATOR, role)
        return world

    def place(self, name: str) -> str:
        return f"{self.mark}-{name}"

    def who(self, name: str) -> str:
        return f"service/{self.mark}-{name}"

    def person(self, name: str) -> Principal:
        return Principal(id=self.who(name), kind="internal", acts_for=self.who(name))

    def end(self, minutes: int | None) -> datetime | None:
        return None if minutes is None else rows("SELECT compute_now()")[0][0] + timedelta(minutes=minutes)

    def callers(self) -> dict[str, Principal]:
        """Everybody who can call now, by a name that stays."""
        found = {name: self.person(name) for name in PEOPLE}
        with transaction.transaction():
            for secret in self.secrets:
                try:
                    found[secret] = presented.Presented(presented.digest(secret)).principal()
                except ComputeError:
                    continue
        return found

    def grant(self, by: Principal, gift: Any) -> None:
        name, place, conveyed, inherit, minutes = gift
        if conveyed.get("role") == "role":
            conveyed = {"role": f"{self.place('org')}/role"}
        ask = {"tenantId": self.place(place), "principal": self.who(name), "inherit": inherit, **conveyed}
        compute.api.grants.create(by, {**ask, "expiresAt": self.end(minutes)})

    def step(self, kind: str, caller: str, by: Principal, number: int, gift: Any) -> None:
        """One call. Raises what refuses it."""
        name, place, conveyed, inherit, minutes = gift
        patterns = conveyed.get("actions", ["compute:acme:*"])
        if kind in ("give", "trusted"):
            self.grant(by, gift)
        elif kind == "token":
            ask: dict[str, Any] = {"tenantId": self.place("own"), "label": "t", "expiresAt": self.end(minutes)}
            ask |= {"principal": self.who(name)} if number % 2 else {}
            ask |= {"actions": patterns} if number % 3 == 0 else {}
            ask |= {"everywhere": True} if inherit else {}
            self.keep(caller, by, compute.api.tokens.create(by, ask).secret)
        elif kind == "rotate" and self.secrets:
            of = self.secrets[number % len(self.secrets)]
            id = rows("SELECT id::text FROM compute_iam_tokens WHERE digest = %s", presented.digest(of))[0][0]
            self.keep(caller, by, compute.api.tokens.rotate(by, {"tokenId": id, "graceSeconds": 600}).secret)
        elif kind == "role":
            compute.api.roles.update(by, {"roleId": f"{self.place('org')}/role", "permits": patterns})
        elif kind == "ceiling":
            ceiling = None if number % 3 == 0 else patterns
            ask = {"parentId": self.place("org"), "tenantId": self.place("own"), "ceiling": ceiling}
            compute.api.tenant_tree.set_ceiling(by, ask)
        elif kind == "glass":
            compute.api.break_glass.activate(by, {"tenantId": self.place(place), "reason": "fire"})
        elif kind == "lift":
            forbids = rows(
                "SELECT id::text FROM compute_iam_grants WHERE effect = 'forbid' AND revoked_at IS NULL"
                " AND tenant_id LIKE %s ORDER BY id",
                f"{self.mark}-%",
            )
            for (id,) in forbids[:1]:
                compute.api.grants.revoke(by, {"grantId": id})
        elif kind == "enable":
            compute.api.service_accounts.enable(by, {"principal": self.who(name)})

    def keep(self, caller: str, by: Principal, secret: str) -> None:
        """Note a secret and everybody who has it by way of this call."""
        self.secrets.append(secret)
        self.holders[secret] = self.holders.get(caller, frozenset({by.acts_for}))


def facts() -> tuple[Facts, datetime]:
    with transaction.transaction():
        reading = projection.read(compute.context("iam"))
    return reading.facts, reading.at


def can(known: Facts, caller: Principal, place: str, action: str, at: datetime) -> bool:
    """Whether the caller may do it then, at once or by breaking the glass first."""
    narrowed = narrowing(caller) or Narrowing()
    if narrowed.expires_at is not None and at >= narrowed.expires_at:
        return False
    question = Question(caller.acts_for, action, place, at, None, narrowed)
    if judge(known, question).allowed:
        return True
    if narrowed.actions is not None and "*" not in narrowed.actions.texts:
        return False
    if not judge(known, replace(question, action=BREAK_GLASS)).allowed:
        return False
    broken = tuple(
        Grant(f"glass/{who}", who, "permit", "owner", Patterns(), place, None, False, None, None)
        for who in (caller.acts_for, *narrowed.makers)
    )
    return judge(known.changed(Changes(grants=broken), known.version, known.generation), question).allowed


def reach(world: World, known: Facts, caller: Principal, at: datetime) -> set[tuple[str, str, timedelta]]:
    return {
        (place, action, later)
        for place, action, later in product(PLACES, ACTIONS, LATER)
        if can(known, caller, world.place(place), action, at + later)
    }


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.lists(given_to, min_size=2, max_size=4),
    forbid=st.booleans(),
    chain=st.lists(steps, min_size=6, max_size=10),
)
def test_no_chain_of_calls_gives_more_further_or_longer_than_its_givers_had(
    first: list[Any], forbid: bool, chain: list[Any]
) -> None:
    world = World.make()
    for gift in first:
        world.grant(OPERATOR, gift)
    if forbid:
        ask = {"tenantId": world.place("own"), "principal": world.who("ann"), "effect": "forbid"}
        compute.api.grants.create(OPERATOR, {**ask, "actions": ["compute:acme:poke"]})
        compute.api.service_accounts.disable(OPERATOR, {"principal": world.who("cid")})
    for kind, whose, number, gift in chain:
        callers = world.callers()
        known, at = facts()
        before = {name: reach(world, known, each, at) for name, each in callers.items()}
        caller = "trusted" if kind == "trusted" else sorted(callers)[whose % len(callers)]
        by = OPERATOR if kind == "trusted" else callers[caller]
        try:
            world.step(kind, caller, by, number, gift)
        except ComputeError as error:
            event(f"{kind}: {error.code}")
            continue
        event(f"{kind}: done")
        known_after, _ = facts()
        now_calling = world.callers()
        after = {name: reach(world, known_after, each, at) for name, each in now_calling.items()}
        for name, reached in after.items():
            if kind != "trusted":
                givers = before[caller] | (after[caller] if kind == "ceiling" else set())
                assert reached <= before.get(name, set()) | givers, (kind, caller, name, gift)
            for holder in world.holders.get(name, ()):
                owner = Principal(id=holder, kind="internal", acts_for=holder)
                assert reached <= reach(world, known_after, owner, at), (kind, name, holder)
