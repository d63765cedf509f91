"""Whether a call may be made: who owns what it acts on, whether its caller may, what the tenant's state allows."""

from __future__ import annotations

from typing import Any

from better_compute import registry
from better_compute.contract import names
from better_compute.contract.errors import ComputeError, ErrorCode, shown
from better_compute.contract.methods import MethodSpec, Resource
from better_compute.contract.principals import Decision, Principal
from better_compute.engine.contexts import served_port
from better_compute.envelope import idempotency
from better_compute.envelope.act import Act
from better_compute.envelope.authorize import authorizer
from better_compute.store import idempotency as idempotency_store
from better_compute.store.sql import SqlPort


def authorize(act: Act, resource: Resource, input: Any) -> None:
    assert act.principal is not None  # noqa: S101 - the preamble set it
    act.denied = True
    act.tenant_id = _owner_or_former(act, resource, input)
    decision = _decide(act, act.principal, resource)
    if not decision.allowed:
        if not decision.visible:
            raise _not_found(resource)
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            f"{act.principal.id} may not do {act.spec.action} on {resource.type} {shown(resource.id)!r}.",
            mend=_mend(act.spec, decision.reason),
            reason=decision.reason,
        )
    act.denied = False


def _decide(act: Act, principal: Principal, resource: Resource) -> Decision:
    judge = authorizer()
    ahead = getattr(judge, "authorize_ahead", None)
    if ahead is None or act.read is None or act.at is None:
        return judge.authorize(principal, act.spec.action, resource, act.tenant_id)
    found: Decision = ahead(principal, act.spec.action, resource, act.tenant_id, read=act.read[1], at=act.at)
    return found


def admit(act: Act) -> None:
    """Refuse what the tenant's state does not allow; asked after authorization, so that no stranger learns of it."""
    if act.tenant_id is None or act.spec.also_while == "any":
        return
    tenants = served_port("tenants")
    if tenants is not None:
        read = (act.read[0],) if act.read_of == act.tenant_id and act.read is not None else None
        tenants.admit(act.tenant_id, kind=act.spec.kind, also_while=act.spec.also_while, read=read)


def permits(principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> bool:
    return authorizer().authorize(principal, action, resource, tenant_id).allowed


def reaches(act: Act, tenant_id: str) -> bool:
    """Whether the caller might have made this call in another tenant too: then it may tell of that tenant."""
    assert act.principal is not None  # noqa: S101 - the preamble set it
    return permits(act.principal, act.spec.action, Resource("tenant", tenant_id), tenant_id)


def _owner_or_former(act: Act, resource: Resource, input: Any) -> str | None:
    """The owner, also of what this very call deleted when it was made first: its repetition is owed the same answer."""
    try:
        return _owner(resource)
    except ComputeError as error:
        if error.code is not ErrorCode.NOT_FOUND or act.idempotency_key is None or act.dry_run:
            raise
        assert act.principal is not None  # noqa: S101 - the preamble set it
        claim = idempotency_store.Claim(act.principal.id, "", act.spec.dotted, act.idempotency_key)
        former = idempotency_store.tenant_of(claim, idempotency.input_hash(input))
        if former is None:
            raise
        return former


def _owner(resource: Resource) -> str | None:
    """The tenant that owns the resource, None for the installation. Raises NOT_FOUND for what is not there."""
    if resource.type == "system":
        return None
    if resource.type == "tenant":
        if not names.matches(names.TENANT_ID, resource.id):
            raise _not_found(resource)
        return resource.id
    kind = registry.current().resource_types.get(resource.type)
    if kind is None:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"No hosted module's catalog has the resource type {resource.type!r}.",
            mend="Add it to the catalog of the module that owns it.",
        )
    tenant_id = kind.resolve(SqlPort(), resource.id)
    if tenant_id is None:
        raise _not_found(resource)
    return tenant_id


def _not_found(resource: Resource) -> ComputeError:
    # One text for what is missing and for what is another tenant's: it must not tell which.
    return ComputeError(
        ErrorCode.NOT_FOUND,
        f"There is no {resource.type} {shown(resource.id)!r} that you can see.",
        mend="Check the id, and the tenant that your token or session acts in.",
    )


def _mend(spec: MethodSpec, reason: str) -> str:
    if reason == "INSTALLATION_ONLY":
        return "It concerns the whole installation: use a session, or a token of the installation."
    return f"Ask an administrator for the permission {spec.action}."
