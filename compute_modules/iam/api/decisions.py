"""``iam.*``: what may somebody do, why, and who may do something. Answers are as of now; each call judges anew."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from better_compute import (
    ComputeError,
    ComputeViewSet,
    ErrorCode,
    Input,
    Meta,
    MethodContext,
    Output,
    Page,
    PageInput,
    PageKey,
    TenantId,
    compute_method,
)
from compute_modules.iam import authorizer, evaluation
from compute_modules.iam.evaluation import Question, Verdict
from compute_modules.iam.facts import Facts
from compute_modules.iam.patterns import split
from compute_modules.iam.projection import Reading, projection
from compute_modules.iam.roles import BUILT_IN, MEANING

from .inputs import READ, Action, PrincipalId, ResourceRef, TenantInput, of_tenant


class CheckInput(Input):
    """May this principal do this action in the tenant, or on one resource of it? Without a principal: the caller."""

    tenant_id: TenantId
    action: Action
    principal: PrincipalId | None = None
    resource: ResourceRef | None = None


class OneCheck(Input):
    """One of several questions about a tenant."""

    action: Action
    principal: PrincipalId | None = None
    resource: ResourceRef | None = None


class BatchCheckInput(Input):
    """Up to 50 questions about one tenant, answered as of one state of things."""

    tenant_id: TenantId
    checks: Annotated[list[OneCheck], Meta(min_length=1, max_length=50)]


class Checked(Output):
    """The answer and its machine-readable reason."""

    allowed: bool
    reason: str


class BatchChecked(Output):
    """One answer for each question, in their order."""

    results: list[Checked]


class Considered(Output):
    """A grant that was looked at. It counts when it is active, reaches the tenant and matches the action."""

    grant_id: str
    effect: str
    role: str
    actions: list[str]
    tenant_id: str
    inherit: bool
    expires_at: datetime | None
    active: bool
    reaches: bool
    matches: bool
    counts: bool


class Explained(Output):
    """Why. ``decided_by`` is the grant, or the tenant whose ceiling it was."""

    allowed: bool
    reason: str
    decided_by: str
    path: list[str]
    considered: list[Considered]


class ListAllowedInput(Input):
    """Which of these resources of the tenant may the principal do the action on?

    For type ``tenant`` the ids are tenants at or below the tenant, and without ids all of them are asked about. Of any
    other type ids are needed.
    """

    tenant_id: TenantId
    action: Action
    resource_type: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,63}$(?!\n)")] = "tenant"
    ids: Annotated[list[Annotated[str, Meta(min_length=1, max_length=512)]], Meta(max_length=1_000)] | None = None
    principal: PrincipalId | None = None


class AllowedIds(Output):
    """The ids that are the tenant's and allowed, in the order given.

    ``truncated``: more than 1,000 tenants were asked about.
    """

    ids: list[str]
    truncated: bool


class WhoCanInput(PageInput, kw_only=True):
    """Who may do the action in the tenant, or on one resource of it?"""

    tenant_id: TenantId
    action: Action
    resource: ResourceRef | None = None


class Allowed(Output):
    """A principal that may."""

    principal: str


class RoleMeaning(Output):
    """A role that every installation has."""

    role: str
    meaning: str


class CatalogAnswer(Output):
    """What can be granted: the actions and resource types of every hosted module and plugin."""

    actions: list[str]
    resource_types: list[str]
    roles: list[RoleMeaning]


#: Most tenants that listAllowed asks about.
_MOST = 1_000


class Iam(ComputeViewSet):
    """Decisions."""

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def check(self, ctx: MethodContext, input: CheckInput) -> Checked:
        """Tell whether a principal may do an action."""
        _known(ctx, input.action)
        reading = projection.read(ctx)
        verdict = evaluation.judge(reading.facts, _question(ctx, reading, input.tenant_id, input))
        return Checked(allowed=verdict.allowed, reason=verdict.reason)

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def batch_check(self, ctx: MethodContext, input: BatchCheckInput) -> BatchChecked:
        """Answer up to 50 questions at once."""
        reading = projection.read(ctx)
        results = []
        for check in input.checks:
            _known(ctx, check.action)
            verdict = evaluation.judge(reading.facts, _question(ctx, reading, input.tenant_id, check))
            results.append(Checked(allowed=verdict.allowed, reason=verdict.reason))
        return BatchChecked(results=results)

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def explain(self, ctx: MethodContext, input: CheckInput) -> Explained:
        """Tell why a principal may or may not do an action: every grant on the way from the root, and what decided."""
        _known(ctx, input.action)
        reading = projection.read(ctx)
        question = _question(ctx, reading, input.tenant_id, input)
        verdict: Verdict = evaluation.judge(reading.facts, question)
        return Explained(
            allowed=verdict.allowed,
            reason=verdict.reason,
            decided_by=verdict.decided_by,
            path=list(reading.facts.path(input.tenant_id)),
            considered=[_considered(step) for step in evaluation.steps(reading.facts, question)],
        )

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def list_allowed(self, ctx: MethodContext, input: ListAllowedInput) -> AllowedIds:
        """Tell which of up to 1,000 resources a principal may do an action on; never of what is not the tenant's."""
        _known(ctx, input.action)
        reading = projection.read(ctx)
        facts = reading.facts
        base = _question(ctx, reading, input.tenant_id, OneCheck(action=input.action, principal=input.principal))
        if input.resource_type == "tenant":
            asked = sorted(facts.tenants) if input.ids is None else list(dict.fromkeys(input.ids))
            below = [id for id in asked if input.tenant_id in facts.path(id)]
            living = _living(ctx, facts, below[:_MOST])
            questions = {id: _with(base, tenant=id, resource=("tenant", id)) for id in living}
            truncated = len(below) > _MOST
        else:
            own = _own(ctx, input)
            questions = {id: _with(base, tenant=input.tenant_id, resource=(input.resource_type, id)) for id in own}
            truncated = False
        return AllowedIds(
            ids=[id for id, question in questions.items() if evaluation.judge(facts, question).allowed],
            truncated=truncated,
        )

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def who_can(self, ctx: MethodContext, input: WhoCanInput) -> Page[Allowed]:
        """List the principals that may do an action, by id."""
        _known(ctx, input.action)
        reading = projection.read(ctx)
        facts = reading.facts
        resource = _resource(ctx, input.tenant_id, input.resource)
        holders = sorted({who for place in facts.path(input.tenant_id) for who in facts.holders.get(place, ())})

        def read(after: PageKey | None, limit: int) -> Sequence[str]:
            begin = 0 if after is None else bisect_right(holders, str(after[0]))
            return holders[begin : begin + limit]

        def show(principal: str) -> Allowed | None:
            question = Question(principal, input.action, input.tenant_id, reading.at, resource)
            return Allowed(principal=principal) if evaluation.judge(facts, question).allowed else None

        return ctx.page(input, read, key=lambda principal: (principal,), show=show)

    @compute_method(action=READ, kind="query", resource=of_tenant)
    def catalog(self, ctx: MethodContext, input: TenantInput) -> CatalogAnswer:
        """List the actions and resource types that can be granted, and the built-in roles."""
        return CatalogAnswer(
            actions=sorted(ctx.hosted.actions),
            resource_types=sorted(ctx.hosted.resource_types),
            roles=[RoleMeaning(role=role, meaning=MEANING[role]) for role in BUILT_IN],
        )


def _known(ctx: MethodContext, action: str) -> None:
    if action not in ctx.hosted.actions:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"No hosted module has the action {action!r}.",
            mend="iam.catalog lists the actions.",
            reason="ACTION_UNKNOWN",
        )
    split(action)


def _question(ctx: MethodContext, reading: Reading, tenant_id: str, check: CheckInput | OneCheck) -> Question:
    resource = _resource(ctx, tenant_id, check.resource)
    if check.principal is not None:
        return Question(check.principal, check.action, tenant_id, reading.at, resource)
    own = authorizer.question(ctx, ctx.principal, check.action, authorizer.whole(tenant_id), tenant_id, reading.at)
    return own if resource is None else _with(own, tenant=tenant_id, resource=resource)


def _resource(ctx: MethodContext, tenant_id: str, ref: ResourceRef | None) -> tuple[str, str] | None:
    """The resource, seen to be the tenant's: another tenant's reads as if it were not there."""
    if ref is None:
        return None
    if ref.type == "tenant":
        owner: str | None = ref.id
    else:
        kind = ctx.hosted.resource_types.get(ref.type)
        owner = None if kind is None else kind.resolve(ctx.sql, ref.id)
    if owner != tenant_id:
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"There is no {ref.type} {ref.id!r} in {tenant_id!r}.",
            mend="Check the type, the id and the tenant.",
        )
    return (ref.type, ref.id)


def _living(ctx: MethodContext, facts: Facts, tenants: list[str]) -> list[str]:
    """Those in which ``iam.check`` answers: neither they nor any above them are being deleted or gone."""
    standings = ctx.tenants.standings(sorted({place for id in tenants for place in facts.path(id)}))
    dead = {id for id, standing in standings.items() if standing.state in ("deleting", "torn_down")}
    return [id for id in tenants if dead.isdisjoint(facts.path(id))]


def _own(ctx: MethodContext, input: ListAllowedInput) -> list[str]:
    """Those of the ids that are the tenant's, in the order given."""
    kind = ctx.hosted.resource_types.get(input.resource_type)
    if kind is None or input.ids is None:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"No hosted module has resources of type {input.resource_type!r}."
            if kind is None
            else f"Resources of type {input.resource_type!r} are not listed here.",
            mend="Give the `ids` to ask about, of a type that iam.catalog lists.",
        )
    owners = kind.owners(ctx.sql, list(dict.fromkeys(input.ids)))
    return [id for id in dict.fromkeys(input.ids) if owners.get(id) == input.tenant_id]


def _with(question: Question, *, tenant: str, resource: tuple[str, str]) -> Question:
    return Question(question.principal, question.action, tenant, question.at, resource, question.narrowed)


def _considered(step: evaluation.Step) -> Considered:
    grant = step.grant
    return Considered(
        grant_id=grant.id,
        effect=grant.effect,
        role=grant.role,
        actions=list(grant.patterns.texts),
        tenant_id=grant.tenant,
        inherit=grant.inherit,
        expires_at=grant.expires_at,
        active=step.active,
        reaches=step.reaches,
        matches=step.matches,
        counts=step.counts,
    )
