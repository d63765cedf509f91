"""The one exception a module, a method or the registry raises on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Final


class ErrorCode(StrEnum):
    """Stable machine-readable codes; clients branch on these, never on messages."""

    INVALID_CONFIG = "INVALID_CONFIG"
    INVALID_INPUT = "INVALID_INPUT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    ACCESS_DENIED = "ACCESS_DENIED"
    NOT_FOUND = "NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    CONFLICT = "CONFLICT"
    GENERATION_MISMATCH = "GENERATION_MISMATCH"
    IN_USE = "IN_USE"
    NO_CAPACITY = "NO_CAPACITY"
    INVALID_STATE = "INVALID_STATE"
    CURSOR_EXPIRED = "CURSOR_EXPIRED"
    LENGTH_REQUIRED = "LENGTH_REQUIRED"
    PLAN_STALE = "PLAN_STALE"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    HELD_FOR_APPROVAL = "HELD_FOR_APPROVAL"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    STORAGE_BUSY = "STORAGE_BUSY"


#: HTTP status of each code; INVALID_CONFIG is raised at start-up and has a status only for completeness.
STATUS: dict[ErrorCode, HTTPStatus] = {
    ErrorCode.INVALID_CONFIG: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.INVALID_INPUT: HTTPStatus.BAD_REQUEST,
    ErrorCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    ErrorCode.ACCESS_DENIED: HTTPStatus.FORBIDDEN,
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.METHOD_NOT_ALLOWED: HTTPStatus.METHOD_NOT_ALLOWED,
    ErrorCode.CONFLICT: HTTPStatus.CONFLICT,
    ErrorCode.GENERATION_MISMATCH: HTTPStatus.CONFLICT,
    ErrorCode.IN_USE: HTTPStatus.CONFLICT,
    ErrorCode.NO_CAPACITY: HTTPStatus.CONFLICT,
    ErrorCode.INVALID_STATE: HTTPStatus.CONFLICT,
    ErrorCode.CURSOR_EXPIRED: HTTPStatus.GONE,
    ErrorCode.LENGTH_REQUIRED: HTTPStatus.LENGTH_REQUIRED,
    ErrorCode.PLAN_STALE: HTTPStatus.PRECONDITION_FAILED,
    ErrorCode.PAYLOAD_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    ErrorCode.HELD_FOR_APPROVAL: HTTPStatus.LOCKED,
    ErrorCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.INTERNAL_ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.STORAGE_BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
}


#: Most characters of a caller's value that a message shows.
SHOWN: Final = 200


def shown(text: str, limit: int = SHOWN) -> str:
    """The text as a message may show it: past ``limit`` characters it is cut, and ends in an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}\u2026"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with an input: where (RFC 6901 JSON pointer) and what."""

    pointer: str
    detail: str


class ComputeError(Exception):
    """A refusal with a stable code.

    Parameters
    ----------
    code
        One of :class:`ErrorCode`; it decides the HTTP status.
    message
        What is wrong, with the offending value. Shown to the caller, so it holds no secret.
    mend
        What the caller can do about it.
    violations
        For INVALID_INPUT: where in the input.
    retry_after
        Seconds after which a retry makes sense; becomes ``Retry-After``.
    reason
        A machine-readable refinement of the code, e.g. ``TENANT_SUSPENDED``.
    """

    def __init__(
        self,
        code: ErrorCode | str,
        message: str,
        *,
        mend: str = "",
        violations: Sequence[Violation] = (),
        retry_after: int | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.code = ErrorCode(code)
        self.message = message
        self.mend = mend
        self.violations = tuple(violations)
        self.retry_after = retry_after
        self.reason = reason

    @property
    def status(self) -> int:
        """The HTTP status that goes with the code."""
        return int(STATUS[self.code])

    def __str__(self) -> str:
        mend = f" {self.mend}" if self.mend else ""
        return f"{self.code.value}: {self.message}{mend}"


class LeaseLost(Exception):
    """The lease this run holds is gone; its transaction cannot commit. Not a failure of the key."""
