"""The authorizer that judges by this module's grants: ``COMPUTE["IAM"] = "compute_modules.iam.authorizer.Grants"``."""

from __future__ import annotations

from datetime import datetime

from better_compute import Decision, Expression, ModuleContext, Principal, Resource, compute

from .apps import Options
from .evaluation import Question, judge, narrowing
from .projection import AHEAD, Reading, projection


class Grants:
    """Default deny; see :func:`compute_modules.iam.evaluation.judge` for the order.

    Code of this process (kind ``internal``) is trusted, within the tenant it names if it names one. What concerns the
    installation is judged at the root tenant. A Django superuser has what was granted to it and nothing more.
    """

    def authorize(self, principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> Decision:
        """Judge one call in its transaction; see :class:`better_compute.contract.principals.Authorizer`."""
        ctx = compute.context("iam")
        known = self._without_grants(principal, tenant_id)
        return known or self._judged(ctx, projection.read(ctx), principal, action, resource, tenant_id)

    def reading(self) -> Expression:
        """The version of the tables, so that a call's first statement tells whether this process is up to date."""
        return Expression(AHEAD)

    def authorize_ahead(
        self,
        principal: Principal,
        action: str,
        resource: Resource,
        tenant_id: str | None,
        *,
        read: str | None,
        at: datetime,
    ) -> Decision:
        """As :meth:`authorize`; the version was read when the call began, so what was revoked before that acts."""
        if read is None:
            return self.authorize(principal, action, resource, tenant_id)
        ctx = compute.context("iam")
        known = self._without_grants(principal, tenant_id)
        return known or self._judged(ctx, projection.read_ahead(ctx, read, at), principal, action, resource, tenant_id)

    @staticmethod
    def _without_grants(principal: Principal, tenant_id: str | None) -> Decision | None:
        if principal.kind == "internal" and principal.user is None and not principal.acts_for:
            return Decision(principal.tenant_id in (None, tenant_id), visible=False, reason="OTHER_TENANT")
        if principal.user is not None and not principal.user.is_active:
            return Decision(False, visible=False, reason="PRINCIPAL_DISABLED")
        return None

    @staticmethod
    def _judged(
        ctx: ModuleContext,
        reading: Reading,
        principal: Principal,
        action: str,
        resource: Resource,
        tenant_id: str | None,
    ) -> Decision:
        verdict = judge(reading.facts, question(ctx, principal, action, resource, tenant_id, reading.at))
        return Decision(verdict.allowed, visible=verdict.visible or tenant_id is None, reason=verdict.reason)

    def tenants_allowed(self, principal: Principal, action: str) -> frozenset[str] | None:
        """Where :meth:`authorize` would allow the action on the tenant as a whole; None for every tenant."""
        if principal.kind == "internal" and principal.user is None and not principal.acts_for:
            return None if principal.tenant_id is None else frozenset({principal.tenant_id})
        if principal.user is not None and not principal.user.is_active:
            return frozenset()
        ctx = compute.context("iam")
        reading = projection.read(ctx)
        tenants = reading.facts.tenants
        asked = ((id, question(ctx, principal, action, whole(id), id, reading.at)) for id in tenants)
        allowed = frozenset(id for id, each in asked if judge(reading.facts, each).allowed)
        return None if len(allowed) == len(tenants) else allowed


def question(
    ctx: ModuleContext, principal: Principal, action: str, resource: Resource, tenant_id: str | None, at: datetime
) -> Question:
    """What a call asks."""
    options: Options = ctx.options
    return Question(
        principal=principal.acts_for or principal.id,
        action=action,
        tenant=options.root_tenant_id if tenant_id is None else tenant_id,
        at=at,
        resource=(resource.type, resource.id),
        narrowed=narrowing(principal),
    )


def whole(tenant_id: str) -> Resource:
    """The tenant as a whole."""
    return Resource("tenant", tenant_id)
