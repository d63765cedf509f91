"""``Idempotency-Key``: a mutation repeated under one key has its effect once, and answers the same.

A key belongs to one principal, tenant and method. Of an answer, fields declared :data:`~better_compute.Secret`
are kept empty: they are shown to the first call only.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec

from better_compute.contract.errors import ComputeError, ErrorCode, shown
from better_compute.envelope.codec import is_secret as _is_secret
from better_compute.store import idempotency as store

#: What a key may be: visible ASCII without quotes and commas; the draft standard's quotes around it are taken off.
#: Servers join two headers of one name with a comma, so that one with a comma cannot be told from two.
MAX_LENGTH: Final = 255
PATTERN: Final = rf"[!#-+\--\[\]-~]{{1,{MAX_LENGTH}}}"
KEY: Final = re.compile(PATTERN, re.ASCII)
#: Seconds after which a call that met its own twin may be tried again.
RETRY_AFTER_S: Final = 1

_deterministic = msgspec.json.Encoder(order="deterministic")


def key_of(header: str) -> str:
    """The key that a header gives. Raises INVALID_INPUT for one that is malformed."""
    key = header[1:-1] if len(header) > 1 and header[0] == header[-1] == '"' else header
    if KEY.fullmatch(key) is None:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            _wrong(header, key),
            mend="Send one Idempotency-Key of 1 to 255 visible ASCII characters without commas or quotes.",
        )
    return key


def _wrong(header: str, key: str) -> str:
    if not key:
        # Servers pass on a value that is not ASCII as an empty one.
        return "The Idempotency-Key is empty, or holds characters other than visible ASCII."
    told = f"The Idempotency-Key {shown(header, 64)!r}"
    if len(key) > MAX_LENGTH:
        return f"{told} is malformed: it has {len(key)} characters."
    if "," in key:
        return f"{told} holds a comma: the header was given twice, or is no key."
    return f"{told} is malformed: it has {len(key)} characters, not all of them allowed."


def input_hash(input: Any) -> bytes:
    """SHA-256 of the input as it was decoded: white space and the order of members do not count."""
    return hashlib.sha256(_deterministic.encode(input)).digest()


def replay(claim: store.Claim, digest: bytes) -> bytes | None:
    """Claim the key for this transaction; return the answer that is kept for it, None when it is new.

    An answer that is kept is never changed, so it is told to many at once, claimed or not.

    Raises
    ------
    ComputeError
        CONFLICT with reason IDEMPOTENCY_KEY_BUSY while the first call still runs, or IDEMPOTENCY_KEY_REUSED
        when the key was used with another input.
    """
    held = store.lock(claim)
    kept = store.read(claim)
    if kept is None and not held:
        raise ComputeError(
            ErrorCode.CONFLICT,
            f"A call with the Idempotency-Key {claim.key!r} is running.",
            mend="Wait for it, or make the same call again to get its answer.",
            reason="IDEMPOTENCY_KEY_BUSY",
            retry_after=RETRY_AFTER_S,
        )
    if kept is None:
        return None
    if kept.input_hash != digest:
        raise ComputeError(
            ErrorCode.CONFLICT,
            f"The Idempotency-Key {claim.key!r} was used for another input of {claim.method}.",
            mend="Use a new key for a new call.",
            reason="IDEMPOTENCY_KEY_REUSED",
        )
    return kept.answer


def keep(
    claim: store.Claim, digest: bytes, body: bytes, output_type: Any, *, request_id: str, retention_ms: int
) -> None:
    """Keep an answer with the call that gave it, without its secrets."""
    answer = without_secrets(body, output_type)
    store.keep(claim, store.Kept(digest, answer), request_id=request_id, retention_ms=retention_ms)


def without_secrets(body: bytes, output_type: Any) -> bytes:
    """The answer with every value declared secret left empty, however deep in lists, mappings and structs."""
    if not _holds_secrets(output_type):
        return body
    return msgspec.json.encode(_stripped(msgspec.json.decode(body), output_type))


@cache
def _holds_secrets(annotation: Any) -> bool:
    return _reaches_secret(annotation, set())


def _reaches_secret(annotation: Any, seen: set[Any]) -> bool:
    if _is_secret(annotation):
        return True
    if _is_struct(annotation):
        if annotation in seen:
            return False
        seen.add(annotation)
        return any(_reaches_secret(member, seen) for member in _members(annotation).values())
    return any(_reaches_secret(part, seen) for part in get_args(annotation))


def _stripped(value: Any, annotation: Any) -> Any:
    if _is_secret(annotation):
        return "" if isinstance(value, str) else value
    if _is_struct(annotation) and isinstance(value, dict):
        members = _members(annotation)
        return {name: _stripped(each, members.get(name, Any)) for name, each in value.items()}
    parts = [part for part in get_args(annotation) if part is not Ellipsis]
    origin = get_origin(annotation)
    if origin is dict and isinstance(value, dict):
        return {name: _stripped(each, parts[1]) for name, each in value.items()}
    if origin in (list, set, frozenset, tuple) and isinstance(value, list):
        kinds = parts if len(parts) == len(value) else [parts[0]] * len(value)
        return [_stripped(each, kind) for each, kind in zip(value, kinds, strict=True)]
    if origin in (dict, list, set, frozenset, tuple):
        return value
    # Annotated, or a union: a value is stripped as each of its arms would have it.
    for part in parts:
        value = _stripped(value, part)
    return value


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


@cache
def _members(struct: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(struct, include_extras=True)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}
