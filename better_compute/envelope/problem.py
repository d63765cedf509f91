"""Problems: what a refusal looks like to a caller (RFC 9457), and which refusal an exception becomes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any, Final

import django.db
import msgspec
from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation

from better_compute.contract.errors import ComputeError, ErrorCode, shown
from better_compute.store.failures import trace_failure

CONTENT_TYPE: Final = "application/problem+json"
#: Most characters of a text in a problem, whatever a method puts into it.
MAX_TEXT: Final = 1_000
#: Seconds after which a call refused for storage may be tried again.
BUSY_RETRY_AFTER_S: Final = 1

#: The reason of a refusal that leaves it open whether the change was kept.
OUTCOME_UNKNOWN: Final = "OUTCOME_UNKNOWN"

_log = logging.getLogger("better_compute.call")

_BUSY_STATES: Final = {
    "40001": "another call changed the same rows",
    "40P01": "two calls waited for each other",
    "55P03": "a lock was not to be had in time",
    "57014": "a statement ran longer than allowed",
    "25P03": "the call paused for too long between two statements",
    "25006": "the database takes no writes now",
    "53300": "the database has no connection left",
    "57P01": "the database is restarting",
    "57P02": "the database is restarting",
    "57P03": "the database is starting",
}

#: PostgreSQL's ``Key (tenant_id, name)=(t1, x) already exists.``, in any language.
_UNIQUE_KEY: Final = re.compile(r"\((.+?)\)=\(")

#: The server ended the session; sent during COMMIT it leaves the outcome open.
_ENDED_STATES: Final = frozenset({"57P01", "57P02"})


def title(code: ErrorCode) -> str:
    """The code as words: ``INVALID_INPUT`` is ``Invalid input``."""
    return code.value.replace("_", " ").capitalize()


def document(error: ComputeError, request_id: str) -> dict[str, Any]:
    """The problem document of a refusal; ``instance`` is the request id that stands in the log."""
    problem: dict[str, Any] = {
        "type": f"urn:better-compute:problem:{error.code.value}",
        "title": title(error.code),
        "status": error.status,
        "detail": shown(error.message, MAX_TEXT),
        "instance": request_id,
        "code": error.code.value,
    }
    if error.mend:
        problem["mend"] = shown(error.mend, MAX_TEXT)
    if error.reason:
        problem["reason"] = error.reason
    if error.violations:
        problem["errors"] = [
            {"pointer": shown(entry.pointer), "detail": shown(entry.detail, MAX_TEXT)} for entry in error.violations
        ]
    return problem


def encode(error: ComputeError, request_id: str) -> bytes:
    """The document as bytes; text that UTF-8 cannot carry is replaced, for a refusal must always go out."""
    try:
        return msgspec.json.encode(document(error, request_id))
    except UnicodeEncodeError:
        message, mend = (text.encode("utf-8", "replace").decode() for text in (error.message, error.mend))
        plain = ComputeError(error.code, message, mend=mend, reason=error.reason)
        return msgspec.json.encode(document(plain, request_id))


def refusal(
    error: BaseException, request_id: str, *, read_only: bool = False, committing: bool = False
) -> ComputeError:
    """Return the refusal that ``error`` becomes, logging it when it is a defect.

    A ``ComputeError`` stays as it is. Of a database error only the SQLSTATE is judged: neither its text, nor
    SQL, nor parameters reach the caller or the log. A refused write (25006) is a failover's, unless the call
    itself was ``read_only``: then it is a query that writes. A connection lost while ``committing`` leaves it
    open whether the server kept the change, and the refusal says so.
    """
    if isinstance(error, ComputeError):
        if error.code in (ErrorCode.INTERNAL_ERROR, ErrorCode.INVALID_CONFIG):
            _log.error("Call %s failed: %s", request_id, error)
        return error
    if isinstance(error, DisallowedHost):
        return ComputeError(
            ErrorCode.INVALID_INPUT,
            "The Host header names no host that this server answers for.",
            mend="Call an address whose host stands in the server's ALLOWED_HOSTS.",
        )
    if isinstance(error, SuspiciousOperation | BadRequest):
        return ComputeError(
            ErrorCode.INVALID_INPUT,
            f"The request is refused by Django: {type(error).__name__}.",
            mend="Send fewer fields in the query string, or the input as JSON in a POST.",
        )
    database_error = next((each for each in _chain(error) if isinstance(each, django.db.Error)), None)
    if database_error is not None:
        known = _database_refusal(database_error, read_only=read_only, committing=committing)
        if known is not None:
            return known
    _log.error("Call %s failed.\n%s", request_id, trace_failure(error, state_only=True))
    return ComputeError(
        ErrorCode.INTERNAL_ERROR,
        "The call failed for a reason that is not yours.",
        mend=f"Tell the operator the request id {request_id}; the log entry under it says why.",
    )


def _database_refusal(error: BaseException, *, read_only: bool, committing: bool) -> ComputeError | None:
    state = sql_state(error)
    lost = state is None and isinstance(error, django.db.OperationalError | django.db.InterfaceError)
    if committing and (lost or state in _ENDED_STATES or (state or "").startswith("08")):
        return _unknown()
    if read_only and state == "25006":
        return None
    if state == "23505":
        return ComputeError(
            ErrorCode.CONFLICT,
            f"A record with this {_unique_columns(error)} exists already.",
            mend="Read the record that exists, or choose another id.",
        )
    if state in _BUSY_STATES:
        return _busy(_BUSY_STATES[state])
    if lost or (state or "").startswith("08"):
        return _busy("the connection to the database was lost")
    return None


def _unique_columns(error: BaseException) -> str:
    """The columns that may not repeat, from a unique violation's detail; never the values, which may be another's."""
    for each in _chain(error):
        detail = getattr(getattr(each, "diag", None), "message_detail", None)
        match = _UNIQUE_KEY.search(detail) if isinstance(detail, str) else None
        if match is not None:
            return shown(match[1])
    return "identity"


def sql_state(error: BaseException) -> str | None:
    """The SQLSTATE of a database error, None when the server sent none."""
    for each in _chain(error):
        state = getattr(each, "sqlstate", None)
        if isinstance(state, str):
            return state
    return None


def _busy(why: str) -> ComputeError:
    return ComputeError(
        ErrorCode.STORAGE_BUSY,
        f"Nothing was changed: {why}.",
        mend="Make the whole call again.",
        retry_after=BUSY_RETRY_AFTER_S,
    )


def _unknown() -> ComputeError:
    return ComputeError(
        ErrorCode.STORAGE_BUSY,
        "The connection to the database was lost while the change was being committed; it may or may not be kept.",
        mend="Read whether it is there, or repeat the call with the same Idempotency-Key.",
        reason=OUTCOME_UNKNOWN,
        retry_after=BUSY_RETRY_AFTER_S,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        # Not __context__: a defect met while a database error was handled is a defect.
        current = current.__cause__
