"""One request for one method: its limits, its body, and the response that its answer or refusal becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.utils.http import http_date

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode, shown
from better_compute.contract.methods import MethodSpec
from better_compute.contract.principals import Principal
from better_compute.engine import request_log
from better_compute.envelope import call, codec, idempotency, identity, openapi, problem, rate
from better_compute.envelope.act import Act, new_request_id

REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_LENGTH: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
#: RFC 8259: JSON between systems is UTF-8, and its media type has no parameter; many clients state that charset.
_JSON: Final = re.compile(
    r"application/json[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|\"utf-8\")[ \t]*)?)?", re.ASCII | re.IGNORECASE
)
#: RFC 9110, section 13: each makes a change depend on what stands there.
_PRECONDITIONS: Final = ("If-Match", "If-None-Match", "If-Unmodified-Since")
_REALM: Final = 'Bearer realm="better-compute"'


def serve(spec: MethodSpec, request: HttpRequest) -> HttpResponse:
    """Answer one request whose route and verb were found."""
    rate_headers: dict[str, str] = {}

    def count(principal: Principal) -> None:
        level = rate.take(principal)
        rate_headers.update(level.headers() if level is not None else {})

    act = Act(spec, request_id(request), _trace_context(request), on_identified=count)
    if request.encoding is not None:
        # Django reads the address, too, in the charset that a Content-Type states.
        request.encoding = "utf-8"
    try:
        if request.method != "POST":
            refuse_body(request)
        else:
            _refuse_body_headers(request)
            # WSGI tells of no body whether it has arrived, and waits for it as long as its client likes.
            act.arriving = True
            _read_options(act, request)
        credential = identity.of_request(request)
        answer = call.run(act, credential, _decoder(spec, request))
    except ComputeError as error:
        if isinstance(error, rate.RateLimited):
            rate_headers = error.level.headers()
        return refuse(request, error, {**rate_headers, **deprecation(spec)})
    response = _respond(request, answer.body, 200, "application/json")
    for name, value in deprecation(spec).items():
        response[name] = value
    if answer.replayed:
        response["Idempotency-Replayed"] = "true"
    if act.dry_run:
        response["Dry-Run"] = "true"
    for name, value in rate_headers.items():
        response[name] = value
    return response


def serve_document(request: HttpRequest) -> HttpResponse:
    """Answer the OpenAPI document to anyone who can show a credential."""
    try:
        if request.method != "GET":
            raise ComputeError(ErrorCode.METHOD_NOT_ALLOWED, f"{request.method} is not allowed here.", mend="Use GET.")
        refuse_body(request)
        call.identify(identity.of_request(request))
        return _respond(request, openapi.encode(), 200, "application/json")
    except Exception as error:
        allow = {"Allow": "GET"} if request.method != "GET" else None
        return refuse(request, error, allow)


def _read_options(act: Act, request: HttpRequest) -> None:
    """Read what a mutation may be asked besides its input: ``Idempotency-Key`` and ``?dryRun=true``.

    What else a POST's address asks is refused: a dry run that is mistyped must not commit.
    """
    mutation = act.spec.kind == "mutation"
    unknown = sorted(set(request.GET) - ({"dryRun"} if mutation else set()))
    if unknown:
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"The address of this POST asks for {shown(unknown[0], 64)!r}.",
            mend="Put the input into the body; the address may ask for dryRun=true alone."
            if mutation
            else "Put the input into the body; a query keeps nothing, so that there is nothing to try.",
        )
    if not mutation:
        return
    _refuse_preconditions(request)
    key = request.headers.get("Idempotency-Key")
    if key is not None:
        act.idempotency_key = idempotency.key_of(key)
    given = request.GET.getlist("dryRun")
    if given not in ([], ["true"], ["false"]):
        raise ComputeError(
            ErrorCode.INVALID_INPUT, f"dryRun is {', '.join(given)[:64]!r}.", mend="Write dryRun=true or dryRun=false."
        )
    act.dry_run = given == ["true"]


def _refuse_preconditions(request: HttpRequest) -> None:
    """Refuse a change on conditions that nobody judges: its caller believes that another's change is safe from it."""
    for name in _PRECONDITIONS:
        if name in request.headers:
            raise ComputeError(
                ErrorCode.INVALID_INPUT,
                f"{name} is not judged here: an answer has no ETag.",
                mend="Leave it out; a method that minds what stands takes its generation in the input.",
            )


def refuse(request: HttpRequest, error: BaseException, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """The problem document of a refusal, with the headers that go with its code."""
    id = request_id(request)
    refused = error if isinstance(error, ComputeError) else problem.refusal(error, id)
    response = _respond(request, problem.encode(refused, id), refused.status, problem.CONTENT_TYPE)
    if refused.retry_after is not None:
        response["Retry-After"] = str(refused.retry_after)
    if refused.code is ErrorCode.UNAUTHENTICATED:
        response["WWW-Authenticate"] = f'{_REALM}, error="invalid_token"' if refused.reason else _REALM
    for name, value in (headers or {}).items():
        response[name] = value
    return response


def deprecation(spec: MethodSpec) -> dict[str, str]:
    """``Deprecation`` (RFC 9745) and ``Sunset`` (RFC 8594) of a method that will go."""
    if spec.deprecated is None:
        return {}
    headers = {"Deprecation": f"@{_midnight(spec.deprecated.since)}"}
    if spec.deprecated.sunset is not None:
        headers["Sunset"] = http_date(_midnight(spec.deprecated.sunset))
    return headers


def _midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def allowed(spec: MethodSpec | None) -> list[str]:
    """The verbs of a method: queries answer GET besides POST, where a query string can say what they require."""
    return (
        ["GET", "POST"]
        if spec is not None and spec.kind == "query" and codec.answers_get(spec.input_type)
        else ["POST"]
    )


def request_id(request: HttpRequest) -> str:
    """The caller's ``X-Request-Id`` if it is well formed, else a fresh one; the same for the whole request."""
    known = getattr(request, request_log.REQUEST_ATTRIBUTE, None)
    if known is None:
        given = request.headers.get("X-Request-Id", "")
        known = given if REQUEST_ID.fullmatch(given) else new_request_id()
        vars(request)[request_log.REQUEST_ATTRIBUTE] = known
    return str(known)


def _respond(request: HttpRequest, body: bytes, status: int, content_type: str) -> HttpResponse:
    return HttpResponse(
        body,
        status=status,
        content_type=content_type,
        headers={
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Request-Id": request_id(request),
        },
    )


def _trace_context(request: HttpRequest) -> str | None:
    given = request.headers.get("traceparent", "")
    return given if TRACEPARENT.fullmatch(given) else None


def _decoder(spec: MethodSpec, request: HttpRequest) -> Callable[[], Any]:
    if request.method == "GET":
        return lambda: codec.decode_query(spec.input_type, _query(request))
    return lambda: codec.decode_body(spec.input_type, _body(request))


def _query(request: HttpRequest) -> dict[str, list[str]]:
    found = dict(request.GET.lists())
    # Where the bytes are not UTF-8 Django reads Latin-1 or a replacement character, and nobody meant that text.
    raw = request.META.get("QUERY_STRING", "")
    if not raw.isascii() or any("\ufffd" in text for name, texts in found.items() for text in (name, *texts)):
        try:
            unquote_to_bytes(raw.encode("latin-1", "replace")).decode("utf-8")
        except UnicodeDecodeError:
            raise ComputeError(
                ErrorCode.INVALID_INPUT,
                "The query string is not UTF-8.",
                mend="Write its text in UTF-8, percent-encoded, or send the input with POST.",
            ) from None
    return found


def refuse_body(request: HttpRequest) -> None:
    """Refuse a body where none is read, by the headers alone; RFC 9110 (9.3.1) gives that of a GET no meaning."""
    coding = request.headers.get("Transfer-Encoding")
    length = request.META.get("CONTENT_LENGTH") or "0"
    if coding or not _LENGTH.fullmatch(length) or int(length) > 0:
        stated = f"Transfer-Encoding {shown(coding, 32)!r}" if coding else f"Content-Length {length[:32]!r}"
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"This {request.method} has a body ({stated}), which is not read.",
            mend="Put the input into the address, or send it with POST.",
        )


def _refuse_body_headers(request: HttpRequest) -> None:
    """Refuse by the headers alone, before a byte of the body is read."""
    length = request.META.get("CONTENT_LENGTH", "")
    # HTTP/2 may leave the length out without saying that a body comes, and Django would read none of it.
    if request.headers.get("Transfer-Encoding") or (not length and _frames_bodies(request)):
        raise _length_required("The body's length is not stated")
    if length and not _LENGTH.fullmatch(length):
        raise _length_required(f"Content-Length {length[:32]!r} is no number of bytes")
    limit = conf.current().call.max_body_bytes
    if length and int(length) > limit:
        raise _too_large(f"The body has {length} bytes", limit)
    coding = request.headers.get("Content-Encoding", "")
    if length and int(length) > 0 and coding.lower() not in ("", "identity"):
        # RFC 9110, section 8.4: a coding that is not undone may not be overlooked.
        raise ComputeError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            f"The body's Content-Encoding is {shown(coding, 80)!r}.",
            mend="Send the body as it is, without Content-Encoding.",
        )
    media_type = request.META.get("CONTENT_TYPE", "")
    if length and int(length) > 0 and media_type != "application/json" and _JSON.fullmatch(media_type) is None:
        raise ComputeError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE,
            f"The body's Content-Type is {shown(media_type, 80)!r}."
            if media_type
            else "The body has no Content-Type, or one with characters other than visible ASCII.",
            mend="Send JSON in UTF-8, with `Content-Type: application/json` and no parameter but charset=utf-8.",
        )


def _frames_bodies(request: HttpRequest) -> bool:
    return str(request.META.get("SERVER_PROTOCOL", "")).startswith(("HTTP/2", "HTTP/3"))


def _body(request: HttpRequest) -> bytes:
    """Read the body, but never more than one byte over the limit, whatever its headers say."""
    limit = conf.current().call.max_body_bytes
    try:
        # A middleware of the host may have read it already.
        body = request.body if hasattr(request, "_body") else _read(request, limit + 1)
    except (UnreadablePostError, OSError):
        raise _incomplete() from None
    if len(body) > limit:
        raise _too_large(f"The body has more than {limit} bytes", limit)
    # Servers hand on what arrived before the client hung up, and its beginning may be sound JSON.
    if len(body) < int(request.META.get("CONTENT_LENGTH") or 0):
        raise _incomplete()
    return body


def _read(request: HttpRequest, limit: int) -> bytes:
    # Some servers answer a read with what has arrived so far.
    parts = []
    while limit > 0 and (part := request.read(limit)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _incomplete() -> ComputeError:
    return ComputeError(
        ErrorCode.INVALID_INPUT, "The body ended before its Content-Length.", mend="Send the call again, whole."
    )


def _length_required(what: str) -> ComputeError:
    return ComputeError(ErrorCode.LENGTH_REQUIRED, f"{what}.", mend="Send the body whole, with its `Content-Length`.")


def _too_large(what: str, limit: int) -> ComputeError:
    return ComputeError(
        ErrorCode.PAYLOAD_TOO_LARGE,
        f"{what}, and a call may have {limit}.",
        mend="Split the call, or raise COMPUTE['CALL']['MAX_BODY_BYTES'].",
    )
