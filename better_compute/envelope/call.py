"""The envelope: one call, one transaction.

Order: identify -> decode -> the record's tenant and authorization -> the tenant's state -> idempotency -> handler ->
encode -> audit -> work -> commit. Whatever raises on the way rolls everything back; a refusal of a known caller is
then recorded in a transaction of its own, and failing to record it never hides the refusal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from django.db import connections

from better_compute import conf, registry
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.methods import MethodSpec, Resource
from better_compute.contract.principals import Principal
from better_compute.engine import request_log, runs
from better_compute.engine.contexts import BoundMethodContext, EventsPort, module_context
from better_compute.envelope import admission, codec, cursors, idempotency, identity, problem, trail
from better_compute.envelope.act import Act, Answer, new_request_id
from better_compute.envelope.early import Early, ahead
from better_compute.store import audit, idempotency as idempotency_store, preamble, transaction

_log = logging.getLogger("better_compute.call")


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
        trail.keep_refusal(act, refused)
        _note_use(act)
        if refused is error:
            raise
        raise refused from error
    _note_use(act)
    return answer


def _transact(alias: str, act: Act, credential: identity.Credential, decode: Callable[[], Any]) -> Answer:
    # What a transaction may do cannot be widened again, and a TestCase keeps one open for all its calls.
    read_only = act.spec.kind == "query" and not connections[alias].in_atomic_block
    early = Early() if act.arriving else Early.of(decode, act.spec)
    act.read_of, reading = ahead(act.spec, early)
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
        input, act.resource = (Early.of(decode, act.spec) if act.arriving else early).outcome()
        admission.authorize(act, act.resource, input)
        admission.admit(act)
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
            audit.insert(trail.of(act, "allowed", None))
        if claim:
            _keep(act, claim, digest, answer)
        act.committing = True
        return answer


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


def _handle(act: Act, input: Any) -> Any:
    module = module_context(registry.current().module(act.spec.module))
    assert act.principal is not None and act.at is not None  # noqa: S101, PT018 - the preamble set them
    ctx = BoundMethodContext(
        module=module.module,
        sql=module.sql,
        options=module.options,
        log=module.log,
        events=EventsPort(
            act.trace_context, act.request_id, tenant_id=act.tenant_id, reaches=partial(admission.reaches, act)
        ),
        principal=act.principal,
        tenant_id=act.tenant_id,
        request_id=act.request_id,
        judge=partial(admission.permits, act.principal),
        page=cursors.Cursors(act.spec.dotted, act.tenant_id, act.at).page,
    )
    handler = getattr(act.spec.viewset, act.spec.attribute)
    arguments = (act.spec.viewset(), ctx, input) if act.spec.takes_input else (act.spec.viewset(), ctx)
    return handler(*arguments)


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
