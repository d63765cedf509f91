"""The headers of answers and refusals, as the OpenAPI document names them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from better_compute.contract.errors import ErrorCode
from better_compute.contract.methods import MethodSpec

#: What each says, and its schema.
_HEADERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "X-Request-Id": (
        "The caller's X-Request-Id, or a fresh one.",
        {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
    ),
    "Retry-After": ("Seconds to wait before the call again.", {"type": "integer"}),
    "RateLimit-Limit": ("Calls at once that the scarcest limit allows; where limits are set.", {"type": "integer"}),
    "RateLimit-Remaining": ("Calls that are left of it.", {"type": "integer"}),
    "RateLimit-Reset": ("Seconds until one more call may be made.", {"type": "integer"}),
    "Idempotency-Replayed": ("The answer is an earlier call's, kept under the same key.", {"const": "true"}),
    "Dry-Run": ("Nothing was kept.", {"const": "true"}),
    "Deprecation": ("Since when the method is deprecated (RFC 9745).", {"type": "string"}),
    "Sunset": ("From when it may be gone (RFC 8594).", {"type": "string"}),
}
_ALWAYS: Final = ("X-Request-Id",)
_LIMITS: Final = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
#: Refusals that may say when to come back.
_LATER: Final = (ErrorCode.RATE_LIMITED, ErrorCode.STORAGE_BUSY, ErrorCode.CONFLICT)


def components() -> dict[str, Any]:
    """Every header, for the document's components."""
    return {_key(name): {"description": told, "schema": schema} for name, (told, schema) in _HEADERS.items()}


def of_answer(spec: MethodSpec) -> dict[str, Any]:
    """What an answer of the method may carry."""
    marks = ("Idempotency-Replayed", "Dry-Run") if spec.kind == "mutation" else ()
    going = ("Deprecation", "Sunset") if spec.deprecated else ()
    return _named((*_ALWAYS, *_LIMITS, *marks, *going))


def of_refusal(code: ErrorCode) -> dict[str, Any]:
    """What a refusal with this code may carry."""
    return _named((*_ALWAYS, *(("Retry-After",) if code in _LATER else ())))


def _named(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{_key(name)}"} for name in names}


def _key(name: str) -> str:
    return name.removeprefix("X-").replace("-", "")
