"""Bearer tokens: made, found by their hash, revoked."""

from __future__ import annotations

import hashlib
import re
import secrets
import uuid
from datetime import datetime
from typing import Any, Final

from better_compute import conf
from better_compute.access import Token
from better_compute.contract import names
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.engine.contexts import served_port
from better_compute.store import audit, clock, transaction

#: Lets scanners of leaked secrets, and people, see what it is.
PREFIX: Final = "bct_"
#: 32 random bytes, base64url without padding.
PATTERN: Final = re.compile(r"bct_[A-Za-z0-9_-]{43}", re.ASCII)

#: Who makes and revokes tokens on the command line, as audit names it.
OPERATOR: Final = "operator"


def digest(secret: str) -> bytes:
    """What is stored of a token. A secret of 256 random bits needs no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def create(
    *, user: Any, label: str, tenant_id: str | None, expires_at: datetime | None = None, by: str = OPERATOR
) -> tuple[str, Token]:
    """Make a token, with its audit record, and return its secret, which is not to be had again, and its row.

    Parameters
    ----------
    by
        Who asks, as audit names principals; the command line has no other name than ``operator``.
    tenant_id
        The tenant it acts in; None makes a token of the installation.

    Raises
    ------
    ComputeError
        INVALID_INPUT for an empty label, a malformed tenant or an end that is past; INVALID_STATE for a tenant that is
        being deleted or gone.
    """
    if not label.strip() or len(label) > 128:
        raise _refused(f"The label {label[:140]!r} does not have 1 to 128 characters.", "Say what the token is for.")
    if tenant_id is not None and not names.matches(names.TENANT_ID, tenant_id):
        raise _refused(f"The tenant {tenant_id!r} does not match {names.TENANT_ID.pattern}.", "Correct the tenant id.")
    if expires_at is not None and expires_at <= clock.now():
        raise _refused(f"The end {expires_at.isoformat()} is past.", "Give a time in the future.")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = Token(
        digest=digest(secret), hint=secret[:8], user=user, tenant_id=tenant_id, label=label, expires_at=expires_at
    )
    using = conf.current().database
    with transaction.transaction(using=using):
        tenants = served_port("tenants") if tenant_id is not None else None
        if tenants is not None:
            # What was suspended may come back; to what is dying nothing is added.
            tenants.admit(tenant_id, kind="mutation", also_while=frozenset({"suspended"}))
        token.save(using=using, force_insert=True)
        _record("create", token, by)
    return secret, token


def revoke(token_id: Any, *, by: str = OPERATOR) -> Token:
    """Revoke a token, with its audit record; calls refuse it from the next one on. Again changes nothing.

    Raises
    ------
    ComputeError
        NOT_FOUND when there is no such token.
    """
    using = conf.current().database
    rows = Token.objects.using(using)
    with transaction.transaction(using=using):
        changed = rows.filter(pk=token_id, revoked_at=None).update(revoked_at=clock.ComputeNow())
        token = rows.filter(pk=token_id).select_related("user").first()
        if token is not None and changed:
            _record("revoke", token, by)
    if token is None:
        raise ComputeError(
            ErrorCode.NOT_FOUND, f"There is no token {token_id}.", mend="`manage.py compute_token list` shows them."
        )
    return token


def _record(verb: str, token: Token, by: str) -> None:
    audit.insert(
        audit.Record(
            at=clock.now(),
            tenant_id=token.tenant_id or "",
            principal=by,
            method=f"token.{verb}",
            action=f"compute:token:{verb}",
            resource_type="token",
            resource_id=str(token.pk),
            outcome="allowed",
            code=None,
            request_id=uuid.uuid4().hex,
        )
    )


def _refused(message: str, mend: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_INPUT, message, mend=mend)
