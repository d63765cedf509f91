"""Refusals as exceptions: one type for each code, so that a caller catches what it can mend.

``except NotFound`` catches NOT_FOUND alone, ``except ApiError`` every refusal; a code of a newer server is an ApiError.
"""

from __future__ import annotations

from typing import Final

import msgspec

from better_compute.contract.errors import ErrorCode


class Violation(msgspec.Struct, frozen=True):
    """What is wrong with an input, and where (RFC 6901)."""

    pointer: str = ""
    detail: str = ""


class Problem(msgspec.Struct, frozen=True):
    """A problem document (RFC 9457)."""

    code: str = ""
    status: int = 0
    title: str = ""
    detail: str = ""
    mend: str = ""
    reason: str = ""
    instance: str = ""
    errors: tuple[Violation, ...] = ()


class ApiError(Exception):
    """The server refused a call. ``str()`` says what is wrong and what can be done."""

    code: str = ""

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        #: Seconds after which the server takes the call again, where it says so.
        self.retry_after_s = retry_after_s
        self.code = problem.code or self.code

    @property
    def reason(self) -> str:
        """A refinement of the code."""
        return self.problem.reason

    @property
    def request_id(self) -> str:
        """Under which the server's log has more."""
        return self.problem.instance

    def __str__(self) -> str:
        problem = self.problem
        mend = f" {problem.mend}" if problem.mend else ""
        return f"{self.code or problem.status}: {problem.detail or problem.title}{mend}"


class ConnectionLost(Exception):
    """No answer came, also after the retries. Whether a call without an Idempotency-Key had its effect is unknown."""


class BadAnswer(Exception):
    """What answered is not the API of an installation, or not one that this client knows: no retry mends that.

    Whether a call without an Idempotency-Key had its effect is unknown.
    """


def _type_of(code: ErrorCode) -> type[ApiError]:
    name = "".join(word.capitalize() for word in code.value.split("_"))
    return type(name, (ApiError,), {"code": code.value, "__module__": __name__, "__doc__": f"{code.value}."})


#: The exception of each code.
error_types: Final[dict[str, type[ApiError]]] = {code.value: _type_of(code) for code in ErrorCode}

InvalidInput = error_types["INVALID_INPUT"]
Unauthenticated = error_types["UNAUTHENTICATED"]
AccessDenied = error_types["ACCESS_DENIED"]
NotFound = error_types["NOT_FOUND"]
Conflict = error_types["CONFLICT"]
GenerationMismatch = error_types["GENERATION_MISMATCH"]
InUse = error_types["IN_USE"]
NoCapacity = error_types["NO_CAPACITY"]
InvalidState = error_types["INVALID_STATE"]
CursorExpired = error_types["CURSOR_EXPIRED"]
PlanStale = error_types["PLAN_STALE"]
PayloadTooLarge = error_types["PAYLOAD_TOO_LARGE"]
HeldForApproval = error_types["HELD_FOR_APPROVAL"]
RateLimited = error_types["RATE_LIMITED"]
InternalError = error_types["INTERNAL_ERROR"]
StorageBusy = error_types["STORAGE_BUSY"]


def error_of(status: int, body: bytes, retry_after_s: float | None, otherwise: str = "") -> ApiError:
    """The exception of an answer that is no success; ``otherwise`` tells of one that no server of ours gave."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
        # What is retried follows from the status, which a body must not contradict.
        problem = msgspec.structs.replace(problem, status=status)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        detail = otherwise or f"The server answered {status} without a problem document."
        problem = Problem(status=status, detail=detail)
    return error_types.get(problem.code, ApiError)(problem, retry_after_s)
