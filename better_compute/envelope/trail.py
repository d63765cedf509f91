"""What the audit trail keeps of a call: what was done, and what was denied or failed."""

from __future__ import annotations

import logging
from functools import partial

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.envelope import problem
from better_compute.envelope.act import Act
from better_compute.store import audit, preamble, transaction

_log = logging.getLogger("better_compute.call")


def of(act: Act, outcome: audit.Outcome, code: ErrorCode | None) -> audit.Record:
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


def keep_refusal(act: Act, refused: ComputeError) -> None:
    """Record a denied or failed act of a known caller; a query only when it was denied.

    A commit that got no answer has failed only where it left no record of its own. The record waits no longer for a
    lock than the call's own statements may: the caller waits for it.
    """
    if act.resource is None or act.principal is None:
        return
    denied = refused.code is ErrorCode.ACCESS_DENIED or (act.denied and refused.code is ErrorCode.NOT_FOUND)
    if act.spec.kind == "query" and not denied:
        return
    try:
        record = of(act, "denied" if denied else "failed", refused.code)
        settings = conf.current()
        with transaction.transaction(
            first=partial(preamble.bound, settings.database, settings.call.statement_timeout_ms)
        ):
            if refused.reason != problem.OUTCOME_UNKNOWN or not audit.was_kept(record):
                audit.insert(record)
    except Exception as error:
        _log.error("The refusal of call %s could not be recorded: %s.", act.request_id, type(error).__name__)
