"""The first statement of every call: limits, the call's time and, for a token, who it belongs to, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from django.db import connections

from better_compute.contract.sql import Expression
from better_compute.store import mark, opening

#: How long a call may send nothing, in milliseconds, before PostgreSQL ends it: its body may drip, its process may
#: be frozen, and until then every table it touched is closed to migrations.
IDLE_MS: Final = 60_000

# The statement's own timeout goes ahead of it (``opening``); it stands here too for values that the server binds.
# set_config(..., true) lasts until the transaction ends. A transaction may become read-only at any time.
# The mark goes with the limits: at the end it tells that the transaction is still this one.
LIMITS = (
    "set_config('statement_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true), "
    f"set_config('transaction_read_only', %s, true), compute_now(), {mark.SET}"
)

OPEN = f"SELECT {LIMITS}, {{reading}}"

# Reads the token inside the transaction, so that a revocation counts from the next call on. Takes no lock.
OPEN_WITH_TOKEN = f"""
SELECT {LIMITS}, {{reading}},
  token.id, token.tenant_id, token.last_used_at, token.user_id, token.expires_at,
  token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > compute_now()){{user_columns}}
FROM (VALUES (1)) AS one_row
LEFT JOIN compute_tokens AS token ON token.digest = %s
{{user_join}}
"""  # noqa: S608 - the names come from Django's model of the user

# SKIP LOCKED: the call is over, and whoever holds the row is using the token too, or ending it.
TOUCH = """
UPDATE compute_tokens SET last_used_at = compute_now() WHERE id IN (
  SELECT id FROM compute_tokens
  WHERE id = %s AND (last_used_at IS NULL OR last_used_at < compute_now() - interval '1 minute')
  FOR NO KEY UPDATE SKIP LOCKED)
"""

BOUND: Final = "SELECT set_config('statement_timeout', %s, true)"


#: For a statement that is to read nothing else.
NO_READING: Final = Expression("NULL")


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the statements of a call. Times are in milliseconds."""

    statement_timeout_ms: int
    read_only: bool
    #: What else the statement is to read.
    reading: Expression = NO_READING

    def parameters(self) -> list[Any]:
        """In the order of :data:`LIMITS` and the reading."""
        read_only = "on" if self.read_only else "off"
        return [str(self.statement_timeout_ms), str(IDLE_MS), read_only, *self.reading.params]


@dataclass(frozen=True, slots=True)
class Opening:
    """What every first statement answers: the call's time, and what its reading came to."""

    at: datetime
    read: Any


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
    expires_at: datetime | None
    live: bool
    user: Sequence[Any]


def open_call(alias: str, limits: Limits) -> Opening:
    """Set the limits of the transaction."""
    statement = OPEN.format(reading=limits.reading.sql)
    row = opening.fetch_first(alias, statement, limits.parameters(), within_ms=limits.statement_timeout_ms)
    _, _, _, at, _, read = row
    return Opening(at, read)


def open_call_with_token(
    alias: str, limits: Limits, digest: bytes, user: UserColumns | None
) -> tuple[Opening, TokenRow | None]:
    """Set the limits, and return the token of this SHA-256 digest too, None when there is none."""
    statement = _with_token(alias, user, limits.reading.sql)
    parameters = [*limits.parameters(), digest]
    found = opening.fetch_first(alias, statement, parameters, within_ms=limits.statement_timeout_ms)
    _, _, _, at, _, read, id, tenant_id, last_used_at, user_id, expires_at, live, *row = found
    if id is None:
        return Opening(at, read), None
    return Opening(at, read), TokenRow(id, tenant_id, last_used_at, user_id, expires_at, bool(live), row)


def bound(alias: str, statement_timeout_ms: int) -> None:
    """Begin a transaction beside a call, whose statements end after so long too."""
    opening.fetch_first(alias, BOUND, [str(statement_timeout_ms)])


def touch_token(alias: str, token_id: Any) -> None:
    """Note that the token was used, at most once a minute; in a statement of its own, after the call."""
    with connections[alias].cursor() as cursor:
        cursor.execute(TOUCH, [token_id])


@cache
def _with_token(alias: str, user: UserColumns | None, reading: str) -> str:
    if user is None:
        return OPEN_WITH_TOKEN.format(reading=reading, user_columns="", user_join="")
    quote = connections[alias].ops.quote_name
    columns = "".join(f", owner.{quote(column)}" for column in user.columns)
    join = f"LEFT JOIN {quote(user.table)} AS owner ON owner.{quote(user.primary_key)} = token.user_id"
    return OPEN_WITH_TOKEN.format(reading=reading, user_columns=columns, user_join=join)
