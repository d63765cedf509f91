"""The envelope: one call, one transaction.

Order: identify -> decode -> the record's tenant and authorization -> the tenant's state -> idempotency -> handler ->
encode -> audit -> work -> commit. Whatever raises on the way rolls everything back; a refusal of a known caller is
then recorded in a transaction of its own, and failing to record it never hides the refusal.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from django.db import connections

from better_compute import conf, registry
from better_compute.contract import names
from better_compute.contract.errors import ComputeError, ErrorCode, shown
from better_compute.contract.methods import MethodSpec, Resource
from better_compute.contract.principals import Decision, Principal
from better_compute.contract.sql import Expression
from better_compute.engine import request_log, runs
from better_compute.engine.contexts import BoundMethodContext, EventsPort, module_context, served_port
from better_compute.envelope import codec, cursors, idempotency, identity, problem
from better_compute.envelope.authorize import authorizer
from better_compute.store import audit, idempotency as idempotency_store, preamble, transaction
from better_compute.store.sql import SqlPort

_log = logging.getLogger("better_compute.call")


@dataclass(slots=True)
class Act:
    """What is known of a call so far; a failure is recorded from it."""

    spec: MethodSpec
    request_id: str
    trace_context: str | None = None
    at: datetime | None = None
    principal: Principal | None = None
    resource: Resource | None = None
    tenant_id: str | None = None
    #: The tenant that the first statement read the state of, and what it read.
    read_of: str | None = None
    read: Any = None
    denied: bool = False
    note_use: Callable[[], None] | None = None
    idempotency_key: str | None = None
    dry_run: bool = False
    #: The input is still on its way: nobody waits for it before it is known who calls.
    arriving: bool = False
    #: The handler is done and what is left is to commit.
    committing: bool = False
    #: Told who calls, before anything is done for them; may refuse.
    on_identified: Callable[[Principal], None] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A call's answer as JSON, and as an object of the declared type.

    ``replayed`` tells that the answer is an earlier call's, kept under the same Idempotency-Key; there is then
    no ``result``.
    """

    body: bytes
    result: Any = None
    replayed: bool = False


class _Undone(Exception):
    """Carries the answer of a dry run out of the transaction that it rolls back."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def call(
    spec: MethodSpec,
    principal: Principal,
    input: Any = None,
    *,
    request_id: str | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
) -> Any:
    """Make a call in process and return the method's result.

    Parameters
    ----------
    principal
        Who calls; its permissions are judged as over HTTP.
    input
        The method's input struct, or a mapping with its wire names.
    idempotency_key
        A mutation repeated under the same key has its effect once and returns the same.
    dry_run
        Make every check, deferred constraints included, and keep nothing.

    Raises
    ------
    ComputeError
        Every refusal; INVALID_STATE when a transaction is open here already, since nothing could then promise
        that the call's audit record outlives a roll-back around it, and inside a reconciler's run, whose fence
        the call would not have.
    """
    act = Act(spec, request_id or new_request_id(), idempotency_key=idempotency_key, dry_run=dry_run)
    answer = run(act, identity.Known(principal), lambda: codec.decode_object(spec.input_type, input))
    return msgspec.json.decode(answer.body, type=spec.output_type) if answer.replayed else answer.result


def identify(credential: identity.Credential) -> Principal:
    """Who a credential belongs to, for answers that are nobody's in particular. Raises UNAUTHENTICATED."""
    settings = conf.current()
    limits = preamble.Limits(settings.call.statement_timeout_ms, read_only=False)
    with transaction.transaction():
        return credential.open(settings.database, limits).principal


def new_request_id() -> str:
    """A fresh request id."""
    return uuid.uuid4().hex


def run(act: Act, credential: identity.Credential, decode: Callable[[], Any]) -> Answer:
    """Run one call through the envelope; every failure leaves as a ComputeError."""
    with request_log.during(act.request_id):
        return _run(act, credential, decode)


def _run(act: Act, credential: identity.Credential, decode: Callable[[], Any]) -> Answer:
    alias = conf.current().database
    try:
        _refuse_inside_a_run()
        _refuse_open_transaction(alias)
        answer = _transact(alias, act, credential, decode)
    except _Undone as undone:
        answer = undone.answer
    except Exception as error:
        query = act.spec.kind == "query"
        refused = problem.refusal(error, act.request_id, read_only=query, committing=act.committing and not query)
        _record_refusal(act, refused)
        _note_use(act)
        if refused is error:
            raise
        raise refused from error
    _note_use(act)
    return answer


def _transact(alias: str, act: Act, credential: identity.Credential, decode: Callable[[], Any]) -> Answer:
    # What a transaction may do cannot be widened again, and a TestCase keeps one open for all its calls.
    read_only = act.spec.kind == "query" and not connections[alias].in_atomic_block
    early = _Early() if act.arriving else _Early.of(decode, act.spec)
    act.read_of, reading = _reading(act.spec, early)
    limits = preamble.Limits(conf.current().call.statement_timeout_ms, read_only=read_only, reading=reading)

    def first() -> None:
        opened = credential.open(alias, limits)
        act.at, act.principal, act.note_use, act.read = opened.at, opened.principal, opened.note_use, opened.read
        if act.on_identified is not None:
            act.on_identified(opened.principal)
        if opened.refused is not None:
            # Its body is not waited for, so the record tells of the method alone.
            act.resource = Resource("system", act.spec.dotted)
            raise opened.refused

    with transaction.transaction(using=alias, first=first, marked=True):
        input, act.resource = (_Early.of(decode, act.spec) if act.arriving else early).outcome()
        _authorize(act, act.resource, input)
        _admit(act)
        claim = _claim(act)
        digest = idempotency.input_hash(input) if claim else b""
        replayed = idempotency.replay(claim, digest) if claim else None
        if replayed is not None:
            return Answer(replayed, replayed=True)
        result = _handle(act, input)
        answer = Answer(*codec.encode(result, act.spec.output_type, act.spec.dotted))
        if act.dry_run:
            transaction.check_constraints(alias)
            raise _Undone(answer)
        if act.spec.kind == "mutation":
            audit.insert(_record(act, "allowed", None))
        if claim:
            _keep(act, claim, digest, answer)
        act.committing = True
        return answer


@dataclass(frozen=True, slots=True)
class _Early:
    """Input and resource, decoded before the first statement so that it can read what they need.

    What is wrong with them is told only after the caller is known.
    """

    input: Any = None
    resource: Resource | None = None
    error: Exception | None = None

    @classmethod
    def of(cls, decode: Callable[[], Any], spec: MethodSpec) -> _Early:
        try:
            input = decode()
            return cls(input, spec.resource(input))
        except Exception as error:
            return cls(error=error)

    def outcome(self) -> tuple[Any, Resource]:
        if self.error is not None:
            raise self.error
        assert self.resource is not None  # noqa: S101 - there is one where there is no error
        return self.input, self.resource


def _reading(spec: MethodSpec, early: _Early) -> tuple[str | None, Expression]:
    """What the first statement reads besides, as an array: a query's tenant's state, and what the authorizer needs."""
    tenant_id, state = _state_reading(spec, early)
    needed = _authorizers_reading()
    if tenant_id is None and needed is preamble.NO_READING:
        return None, preamble.NO_READING
    both = f"ARRAY[({state.sql})::text, ({needed.sql})::text]"
    return tenant_id, Expression(both, [*state.params, *needed.params])


def _state_reading(spec: MethodSpec, early: _Early) -> tuple[str | None, Expression]:
    resource = early.resource
    tenants = served_port("tenants")
    if resource is None or resource.type != "tenant" or tenants is None:
        return None, preamble.NO_READING
    if spec.kind != "query" or spec.also_while == "any" or not names.matches(names.TENANT_ID, resource.id):
        return None, preamble.NO_READING
    return resource.id, tenants.reading(resource.id)


def _authorizers_reading() -> Expression:
    try:
        reading = getattr(authorizer(), "reading", None)
    except ComputeError:
        # Told when it is asked to judge: nobody has been identified yet.
        return preamble.NO_READING
    found: Expression = preamble.NO_READING if reading is None else reading()
    return found


def _claim(act: Act) -> idempotency_store.Claim | None:
    """What the caller's Idempotency-Key stands for; None without one, and where nothing is to be kept."""
    if act.idempotency_key is None or act.dry_run or act.spec.kind == "query":
        return None
    assert act.principal is not None  # noqa: S101 - the preamble set it
    return idempotency_store.Claim(act.principal.id, act.tenant_id or "", act.spec.dotted, act.idempotency_key)


def _keep(act: Act, claim: idempotency_store.Claim, digest: bytes, answer: Answer) -> None:
    retention_ms = conf.current().call.idempotency_retention_ms
    idempotency.keep(
        claim, digest, answer.body, act.spec.output_type, request_id=act.request_id, retention_ms=retention_ms
    )


def _authorize(act: Act, resource: Resource, input: Any) -> None:
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


def _admit(act: Act) -> None:
    """Refuse what the tenant's state does not allow; asked after authorization, so that no stranger learns of it."""
    if act.tenant_id is None or act.spec.also_while == "any":
        return
    tenants = served_port("tenants")
    if tenants is not None:
        read = (act.read[0],) if act.read_of == act.tenant_id and act.read is not None else None
        tenants.admit(act.tenant_id, kind=act.spec.kind, also_while=act.spec.also_while, read=read)


def _permits(principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> bool:
    return authorizer().authorize(principal, action, resource, tenant_id).allowed


def _reaches(act: Act, tenant_id: str) -> bool:
    """Whether the caller might have made this call in another tenant too: then it may tell of that tenant."""
    assert act.principal is not None  # noqa: S101 - the preamble set it
    return _permits(act.principal, act.spec.action, Resource("tenant", tenant_id), tenant_id)


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


def _handle(act: Act, input: Any) -> Any:
    module = module_context(registry.current().module(act.spec.module))
    assert act.principal is not None and act.at is not None  # noqa: S101, PT018 - the preamble set them
    ctx = BoundMethodContext(
        module=module.module,
        sql=module.sql,
        options=module.options,
        log=module.log,
        events=EventsPort(act.trace_context, act.request_id, tenant_id=act.tenant_id, reaches=partial(_reaches, act)),
        principal=act.principal,
        tenant_id=act.tenant_id,
        request_id=act.request_id,
        judge=partial(_permits, act.principal),
        page=cursors.Cursors(act.spec.dotted, act.tenant_id, act.at).page,
    )
    handler = getattr(act.spec.viewset, act.spec.attribute)
    arguments = (act.spec.viewset(), ctx, input) if act.spec.takes_input else (act.spec.viewset(), ctx)
    return handler(*arguments)


def _record(act: Act, outcome: audit.Outcome, code: ErrorCode | None) -> audit.Record:
    assert act.at is not None and act.principal is not None and act.resource is not None  # noqa: S101, PT018
    return audit.Record(
        at=act.at,
        tenant_id=act.tenant_id or "",
        principal=act.principal.id,
        method=act.spec.dotted,
        action=act.spec.action,
        resource_type=act.resource.type,
        resource_id=audit.bounded(act.resource.id),
        outcome=outcome,
        code=code.value if code else None,
        request_id=act.request_id,
    )


def _record_refusal(act: Act, refused: ComputeError) -> None:
    """Record a denied or failed act of a known caller; a query only when it was denied.

    A commit that got no answer has failed only where it left no record of its own.
    """
    if act.resource is None or act.principal is None:
        return
    denied = refused.code is ErrorCode.ACCESS_DENIED or (act.denied and refused.code is ErrorCode.NOT_FOUND)
    if act.spec.kind == "query" and not denied:
        return
    try:
        record = _record(act, "denied" if denied else "failed", refused.code)
        with transaction.transaction():
            if refused.reason != problem.OUTCOME_UNKNOWN or not audit.was_kept(record):
                audit.insert(record)
    except Exception as error:
        _log.error("The refusal of call %s could not be recorded: %s.", act.request_id, type(error).__name__)


def _note_use(act: Act) -> None:
    if act.note_use is not None:
        identity.note_use(act.note_use)


def _refuse_inside_a_run() -> None:
    kind = runs.inside()
    if kind is not None:
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"This is a run of {kind}, and a call commits for itself, without the fence of the run's lease.",
            mend="Inside ctx.sql.transaction(), call the function that does the work instead.",
            reason="INSIDE_RUN",
        )


def _refuse_open_transaction(alias: str) -> None:
    connection = connections[alias]
    # A TestCase's own block is meant to be taken for none, as Django's durable blocks do.
    blocks = [block for block in connection.atomic_blocks[-1:] if not getattr(block, "_from_testcase", False)]
    if blocks:
        whose = "another call's or a reconciler's" if transaction.is_open(alias) else "the host's"
        raise ComputeError(
            ErrorCode.INVALID_STATE,
            f"A transaction is open on {alias!r} already ({whose}), so this call could not promise a commit.",
            mend="Call outside atomic(); inside a method, call the function that does the work instead.",
            reason="TRANSACTION_OPEN",
        )
