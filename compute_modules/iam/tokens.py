"""Scoped tokens: shown once, stored hashed, never worth more than their principal nor than who made them.

Whoever makes a token for a service account has its secret. So the token is judged by its makers' rights beside the
account's at each call: what the account gains later, or a maker loses, acts on it at once.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from better_compute import ComputeError, ErrorCode, MethodContext, ModuleContext, Principal

from . import giving, grants, patterns, principals, states
from .evaluation import Narrowing, narrowing
from .giving import Gift
from .jsonb import encoded
from .patterns import covers
from .presented import PREFIX, digest, texts
from .projection import Reading
from .states import State, Verb

COLUMNS: Final = (
    "id, hint, principal_id, home_tenant_id, tenant_id, actions, label, created_at, created_by, expires_at, revoked_at,"
    " last_used_at, replaced_by, makers"
)


@dataclass(frozen=True, slots=True)
class Record:
    """A token's row, and its state by the database's clock."""

    row: dict[str, Any]
    actions: list[str] | None
    makers: list[str]

    @property
    def state(self) -> State:
        """Active, expired or revoked."""
        return states.state_of(
            self.row["now"], starts_at=None, expires_at=self.row["expires_at"], revoked_at=self.row["revoked_at"]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token to be made."""

    principal: str
    home_tenant: str
    label: str
    tenant: str | None = None
    actions: Sequence[str] | None = None
    expires_at: datetime | None = None


def create(ctx: MethodContext, wanted: NewToken) -> tuple[str, str]:
    """Make a token and return its id and its secret, which is not to be had again.

    A caller may make tokens for itself, and for a service account whose rights it holds itself; it stays the maker of
    such a token, which is worth no more than its maker from then on. A token made with a token is worth and lasts no
    more than that one.

    Raises
    ------
    ComputeError
        ACCESS_DENIED, INVALID_INPUT or NOT_FOUND.
    """
    reading = grants.begin(ctx)
    if wanted.actions is not None:
        patterns.require_known(ctx, wanted.actions)
    if wanted.tenant is not None and wanted.home_tenant not in reading.facts.path(wanted.tenant):
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"There is no tenant {wanted.tenant!r} at or below {wanted.home_tenant!r}.",
            mend="Name the tenant the token shall act in, or one below it.",
        )
    if wanted.expires_at is not None and (wanted.expires_at.tzinfo is None or wanted.expires_at <= reading.at):
        raise ComputeError(
            ErrorCode.INVALID_INPUT,
            f"The end {wanted.expires_at.isoformat()} is past or has no time zone.",
            mend="Give a time in the future, such as 2030-01-31T12:00:00Z.",
        )
    _check_owner(ctx, reading, wanted.principal, wanted.home_tenant)
    _check_narrowing(ctx, reading, wanted)
    principals.ensure(ctx, wanted.principal, by=ctx.principal.id)
    return _insert(ctx, wanted)


def rotate(ctx: MethodContext, token_id: str, *, grace: timedelta) -> tuple[str, str]:
    """Put a new token in an active one's place; the old one stays good for ``grace``, so that nothing is cut off.

    Whoever rotates a token of a service account is the maker of the new one.
    """
    reading = grants.begin(ctx)
    old = read(ctx, token_id, lock=True)
    states.TOKEN.after(token_id, old.state, Verb.ROTATE)
    wanted = NewToken(
        principal=old.row["principal_id"],
        home_tenant=old.row["home_tenant_id"],
        label=old.row["label"],
        tenant=old.row["tenant_id"],
        actions=old.actions,
        expires_at=old.row["expires_at"],
    )
    _check_owner(ctx, reading, wanted.principal, wanted.home_tenant)
    if ctx.principal.id != f"iam-token/{token_id}":
        _check_narrowing(ctx, reading, wanted)
    id, secret = _insert(ctx, wanted)
    ctx.sql.query(
        "UPDATE compute_iam_tokens SET replaced_by = %s, expires_at = LEAST(expires_at, compute_now() + %s::interval)"
        " WHERE id = %s",
        [id, f"{grace.total_seconds()} s", token_id],
    )
    _tell(ctx, "iam.token-rotated", old, replacedBy=id)
    return id, secret


def revoke(ctx: MethodContext, token_id: str) -> Record:
    """End a token; it is refused from the next request on."""
    old = read(ctx, token_id, lock=True)
    states.TOKEN.after(token_id, old.state, Verb.REVOKE)
    ctx.sql.query("UPDATE compute_iam_tokens SET revoked_at = compute_now() WHERE id = %s", [token_id])
    _tell(ctx, "iam.token-revoked", old)
    return read(ctx, token_id)


def read(ctx: ModuleContext, token_id: str, *, lock: bool = False) -> Record:
    """One token, locked on demand. Raises NOT_FOUND."""
    rows = ctx.sql.query(
        f"SELECT {COLUMNS}, compute_now() AS now FROM compute_iam_tokens WHERE id = %s"  # noqa: S608
        + (" FOR UPDATE" if lock else ""),
        [token_id],
    ).rows
    if not rows:
        raise ComputeError(ErrorCode.NOT_FOUND, f"There is no token {token_id}.", mend="tokens.list shows them.")
    return record(rows[0])


def record(row: dict[str, Any]) -> Record:
    """A row as a record."""
    return Record(row, texts(row["actions"]), texts(row["makers"]) or [])


def _insert(ctx: MethodContext, wanted: NewToken) -> tuple[str, str]:
    id, secret = str(uuid.uuid4()), PREFIX + secrets.token_urlsafe(32)
    actions = None if wanted.actions is None else encoded(wanted.actions)
    makers = encoded(_makers(ctx.principal, wanted.principal))
    ctx.sql.query(
        "INSERT INTO compute_iam_tokens (id, digest, hint, principal_id, home_tenant_id, tenant_id, actions, label,"
        " created_at, created_by, expires_at, makers)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb, %s, compute_now(), %s, %s, %s::jsonb)",
        [
            id,
            digest(secret),
            secret[:8],
            wanted.principal,
            wanted.home_tenant,
            wanted.tenant,
            actions,
            wanted.label,
            ctx.principal.id,
            wanted.expires_at,
            makers,
        ],
    )
    _tell(ctx, "iam.token-created", read(ctx, id))
    return id, secret


def _makers(caller: Principal, principal: str) -> list[str]:
    """Who has the secret of a token that ``caller`` makes: the makers of its own, and itself for another principal."""
    if giving.is_trusted(caller):
        return []
    narrowed = narrowing(caller)
    having = [*(narrowed.makers if narrowed else ()), caller.acts_for or caller.id]
    return [who for who in dict.fromkeys(having) if who != principal]


def _check_owner(ctx: MethodContext, reading: Reading, principal: str, home_tenant: str) -> None:
    """Whoever makes or rotates a token has its secret, and with it the principal's rights."""
    if giving.is_trusted(ctx.principal) or principal == (ctx.principal.acts_for or ctx.principal.id):
        return
    who = reading.facts.principals.get(principal)
    if who is None or who.kind != "service":
        raise ComputeError(
            ErrorCode.ACCESS_DENIED,
            f"Only {principal} itself may make tokens of its own.",
            mend="Make a token for yourself, or for a service account.",
            reason="NOT_YOURSELF",
        )
    if who.tenant_id != home_tenant:
        raise ComputeError(
            ErrorCode.NOT_FOUND,
            f"There is no service account {principal!r} in {home_tenant!r}.",
            mend="serviceAccounts.list shows them.",
        )
    holds_all_of(ctx, reading, principal)


def holds_all_of(ctx: MethodContext, reading: Reading, principal: str) -> None:
    """Refuse unless the caller could give everything that ``principal`` has."""
    holdings = reading.facts.holdings.get(principal)
    for grant in holdings.by_id.values() if holdings else ():
        if grant.effect == "permit" and (grant.expires_at is None or grant.expires_at > reading.at):
            gift = Gift(reading.facts.rights(grant), grant.tenant, grant.inherit, grant.resource, grant.expires_at)
            giving.require(ctx, reading.facts, gift, reading.at)


def _check_narrowing(ctx: MethodContext, reading: Reading, wanted: NewToken) -> None:
    """A token makes no token that is wider or lives longer than itself."""
    if ctx.principal.kind != "token":
        return
    own = ctx.principal.narrowed_to
    if not isinstance(own, Narrowing):
        raise _wider("A token of this kind makes no tokens.", "Use a session, or a scoped token.")
    if own.tenant_id is not None and (wanted.tenant is None or own.tenant_id not in reading.facts.path(wanted.tenant)):
        raise _wider(f"This token acts in {own.tenant_id!r} only.", f"Give a tenant at or below {own.tenant_id!r}.")
    if own.actions is not None and not all(
        any(covers(wide, text) for wide in own.actions.texts) for text in wanted.actions or ("*",)
    ):
        raise _wider("This token may not do all of it.", f"Give actions within {', '.join(own.actions.texts)}.")
    if own.expires_at is not None and (wanted.expires_at is None or wanted.expires_at > own.expires_at):
        raise _wider("This token ends sooner.", f"Give an end at or before {own.expires_at.isoformat()}.")


def _wider(message: str, mend: str) -> ComputeError:
    return ComputeError(ErrorCode.ACCESS_DENIED, message, mend=mend, reason="EXCEEDS_GIVER")


def _tell(ctx: MethodContext, type: str, token: Record, **more: Any) -> None:
    ctx.events.publish(
        type=type,
        tenant_id=token.row["home_tenant_id"],
        subject=f"token/{token.row['id']}",
        data={"principal": token.row["principal_id"], "label": token.row["label"], **more},
    )


def page(ctx: ModuleContext, tenant_id: str, *, owner: str | None, after: str | None, limit: int) -> list[Record]:
    """Up to ``limit`` tokens of a tenant, of one owner if named, by id."""
    rows = ctx.sql.query(
        f"SELECT {COLUMNS}, compute_now() AS now FROM compute_iam_tokens"  # noqa: S608 - constant names
        " WHERE home_tenant_id = %s AND (%s::text IS NULL OR principal_id = %s) AND (%s::uuid IS NULL OR id > %s::uuid)"
        " ORDER BY id LIMIT %s",
        [tenant_id, owner, owner, after, after, limit],
    ).rows
    return [record(row) for row in rows]
