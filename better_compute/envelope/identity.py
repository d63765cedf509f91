"""Who calls: a bearer token, a Django session, or a principal given in process."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.principals import BearerCredential, Principal
from better_compute.engine.contexts import served_port
from better_compute.envelope import tokens
from better_compute.store import preamble, transaction

_log = logging.getLogger("better_compute.call")

#: A second credential where a server joined two headers; a list of parameters, as of Digest, has none.
_SECOND: Final = re.compile(r",\s*bearer\s", re.IGNORECASE)

#: ``last_used_at`` of a token is kept to this.
TOUCH_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Opened:
    """What the first statement of a call found out."""

    at: datetime
    principal: Principal
    #: What the reading of its limits came to.
    read: Any = None
    #: Notes the use of the token, once the call has ended.
    note_use: Callable[[], None] | None = None
    #: Why the call is refused although it is known who calls.
    refused: ComputeError | None = None


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that was presented; ``open`` looks it up in the call's transaction."""

    digest: bytes

    def open(self, alias: str, limits: preamble.Limits) -> Opened:
        """Begin the call. Raises UNAUTHENTICATED for an unknown, expired or revoked token or an inactive user."""
        columns = _user_columns(alias)
        opening, row = preamble.open_call_with_token(alias, limits, self.digest, columns)
        if row is None or not row.live:
            raise unauthenticated("The token is unknown, expired or revoked.", presented=True)
        user = _user(alias, columns, row)
        if user is None or not getattr(user, "is_active", True):
            raise unauthenticated("The token's user may not call any more.", presented=True)
        due = row.last_used_at is None or opening.at - row.last_used_at >= TOUCH_EVERY
        principal = Principal(
            id=f"token/{row.id}",
            kind="token",
            tenant_id=row.tenant_id,
            user=user,
            acts_for=f"user/{user.pk}",
            ends_at=row.expires_at,
        )
        noting = partial(_touch, alias, row.id, limits.statement_timeout_ms) if due else None
        return Opened(opening.at, principal, opening.read, noting)


@dataclass(frozen=True, slots=True)
class Known:
    """A principal that stands already: of a session, or of a caller in process."""

    principal: Principal
    #: Why a session's request is refused, when it came without its CSRF token or from a foreign origin.
    refused: ComputeError | None = None

    def open(self, alias: str, limits: preamble.Limits) -> Opened:
        """Begin the call. Raises UNAUTHENTICATED when its user is not active."""
        user = self.principal.user
        if user is not None and not getattr(user, "is_active", True):
            raise unauthenticated("The user may not call any more.")
        opening = preamble.open_call(alias, limits)
        return Opened(opening.at, self.principal, opening.read, refused=self.refused)


@dataclass(frozen=True, slots=True)
class Recognised:
    """A bearer credential that a hosted authenticator knows, and looks up in the call's transaction."""

    credential: BearerCredential

    def open(self, alias: str, limits: preamble.Limits) -> Opened:
        """Begin the call. Raises UNAUTHENTICATED for what was revoked or has expired."""
        opening = preamble.open_call(alias, limits)
        return Opened(opening.at, self.credential.principal(), opening.read, self.credential.note_use)


Credential = Bearer | Known | Recognised


def of_request(request: HttpRequest) -> Credential:
    """The credential of a request: ``Authorization: Bearer`` if it stands there, else the session.

    Raises
    ------
    ComputeError
        UNAUTHENTICATED without either, for a malformed token and for two. A session that posts without its CSRF token
        is refused by the call, which records it: it is known who calls.
    """
    header = request.headers.get("Authorization")
    if header is not None and (not header.strip() or _SECOND.search(header)):
        # No session stands in for a credential that did not arrive whole.
        raise unauthenticated(
            "The Authorization header was given more than once."
            if header.strip()
            else "The Authorization header is empty, or holds characters other than visible ASCII.",
            presented=True,
        )
    scheme, _, secret = (header or "").partition(" ")
    if scheme.lower() == "bearer":
        if tokens.PATTERN.fullmatch(secret) is None:
            authenticator = served_port("authenticator")
            credential = None if authenticator is None else authenticator.recognise(secret)
            if credential is not None:
                return Recognised(credential)
            raise unauthenticated("The bearer token is malformed.", presented=True)
        return Bearer(tokens.digest(secret))
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        raise unauthenticated("The call carries neither a bearer token nor a session.")
    return Known(session_principal(user), _csrf_refusal(request) if request.method == "POST" else None)


def unauthenticated(message: str, *, presented: bool = False) -> ComputeError:
    """A refusal that asks for a token; ``presented`` tells that one was given and is no good."""
    return ComputeError(
        ErrorCode.UNAUTHENTICATED,
        message,
        mend="Send `Authorization: Bearer <token>`; `manage.py compute_token create` makes one.",
        reason="INVALID_TOKEN" if presented else "",
    )


class _CsrfCheck(CsrfViewMiddleware):
    """Django's own check, telling the reason instead of answering with a page."""

    def _reject(self, request: HttpRequest, reason: str) -> HttpResponse:
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            f"The session's request was refused: {reason}",
            mend="Send the CSRF cookie's value as X-CSRFToken, from a trusted origin; or use a bearer token.",
            reason="CSRF",
        )


def _csrf_refusal(request: HttpRequest) -> ComputeError | None:
    check = _CsrfCheck(lambda _: HttpResponse())
    try:
        check.process_request(request)
        check.process_view(request, _no_view, (), {})
    except ComputeError as error:
        return error
    return None


def _no_view(request: HttpRequest) -> HttpResponse:
    raise NotImplementedError


@cache
def _user_columns(alias: str) -> preamble.UserColumns | None:
    """The user model's columns, or None when its rows take more than reading them."""
    model = get_user_model()
    fields = model._meta.concrete_fields
    connection = connections[alias]
    if any(field.model is not model or field.get_db_converters(connection) for field in fields):
        return None
    return preamble.UserColumns(
        model._meta.db_table, str(model._meta.pk.column), tuple(str(field.column) for field in fields)
    )


def _user(alias: str, columns: preamble.UserColumns | None, row: preamble.TokenRow) -> Any:
    model = get_user_model()
    if columns is None:
        return model._base_manager.using(alias).filter(pk=row.user_id).first()
    return model.from_db(alias, [field.attname for field in model._meta.concrete_fields], row.user)


def note_use(noting: Callable[[], None]) -> None:
    """Note a token's use after its call; a failure is no reason to fail the call."""
    try:
        noting()
    except Exception as error:
        _log.warning("The use of a token could not be noted: %s.", type(error).__name__)


def _touch(alias: str, token_id: Any, statement_timeout_ms: int) -> None:
    """Note it in a transaction of its own, since the caller waits for it: it waits for no lock for long."""
    with transaction.transaction(using=alias, first=partial(preamble.bound, alias, statement_timeout_ms)):
        preamble.touch_token(alias, token_id)


def session_principal(user: Any) -> Principal:
    """Who a user with a session is to the envelope and to audit."""
    return Principal(id=f"user/{user.pk}", kind="session", user=user)
