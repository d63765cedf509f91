"""The first statement of every call: limits, the call's time and, for a token, who it belongs to, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connections

# set_config(..., true) lasts until the transaction ends. A transaction may become read-only at any time.
LIMITS = "set_config('statement_timeout', %s, true), set_config('transaction_read_only', %s, true), compute_now()"

OPEN = f"SELECT {LIMITS}"

# Reads the token inside the transaction, so that a revocation counts from the next call on. Takes no lock.
OPEN_WITH_TOKEN = f"""
SELECT {LIMITS},
  token.id, token.tenant_id, token.last_used_at, token.user_id,
  token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > compute_now()){{user_columns}}
FROM (VALUES (1)) AS one_row
LEFT JOIN compute_tokens AS token ON token.digest = %s
{{user_join}}
"""  # noqa: S608 - the names come from Django's model of the user

TOUCH = """
UPDATE compute_tokens SET last_used_at = compute_now()
WHERE id = %s AND (last_used_at IS NULL OR last_used_at < compute_now() - interval '1 minute')
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the statements of a call. Times are in milliseconds."""

    statement_timeout_ms: int
    read_only: bool

    def parameters(self) -> list[str]:
        """In the order of :data:`LIMITS`."""
        return [str(self.statement_timeout_ms), "on" if self.read_only else "off"]


@dataclass(frozen=True, slots=True)
class UserColumns:
    """Table, primary key and columns of the user model, so that its row comes in the same statement."""

    table: str
    primary_key: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token as the database knows it; ``live`` tells that it is neither revoked nor expired."""

    id: Any
    tenant_id: str | None
    last_used_at: datetime | None
    user_id: Any
    live: bool
    user: Sequence[Any]


def open_call(alias: str, limits: Limits) -> datetime:
    """Set the limits of the transaction and return its time."""
    with connections[alias].cursor() as cursor:
        cursor.execute(OPEN, limits.parameters())
        at: datetime = cursor.fetchone()[2]
        return at


def open_call_with_token(
    alias: str, limits: Limits, digest: bytes, user: UserColumns | None
) -> tuple[datetime, TokenRow | None]:
    """Set the limits, and return the time and the token of this SHA-256 digest, None when there is none."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_with_token(alias, user), [*limits.parameters(), digest])
        _, _, at, id, tenant_id, last_used_at, user_id, live, *row = cursor.fetchone()
    if id is None:
        return at, None
    return at, TokenRow(id, tenant_id, last_used_at, user_id, bool(live), row)


def touch_token(alias: str, token_id: Any) -> None:
    """Note that the token was used, at most once a minute; in a statement of its own, after the call."""
    with connections[alias].cursor() as cursor:
        cursor.execute(TOUCH, [token_id])


@cache
def _with_token(alias: str, user: UserColumns | None) -> str:
    if user is None:
        return OPEN_WITH_TOKEN.format(user_columns="", user_join="")
    quote = connections[alias].ops.quote_name
    columns = "".join(f", owner.{quote(column)}" for column in user.columns)
    join = f"LEFT JOIN {quote(user.table)} AS owner ON owner.{quote(user.primary_key)} = token.user_id"
    return OPEN_WITH_TOKEN.format(user_columns=columns, user_join=join)
