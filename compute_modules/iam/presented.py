"""A scoped token as it is presented with a call: its form, its digest, and whose rights it carries."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

from better_compute import ComputeError, ErrorCode, Principal, compute

from . import principals
from .evaluation import Narrowing
from .jsonb import decoded
from .patterns import Patterns

#: Lets scanners of leaked secrets, and people, see what it is.
PREFIX: Final = "bci_"
#: 32 random bytes, base64url without padding.
FORM: Final = re.compile(r"bci_[A-Za-z0-9_-]{43}", re.ASCII)

_LOOK_UP: Final = """
SELECT token.id, token.principal_id, token.tenant_id, token.actions, token.expires_at, token.makers,
       token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > compute_now())
         AND owner.disabled_at IS NULL AS live,
       token.last_used_at IS NULL OR token.last_used_at < compute_now() - interval '1 minute' AS due
FROM compute_iam_tokens AS token LEFT JOIN compute_iam_principals AS owner ON owner.id = token.principal_id
WHERE token.digest = %s
"""

#: Longest that noting a use may take: the caller waits for it, and the call is over.
LONGEST_NOTE: Final = "2s"

# SKIP LOCKED: the call is over, and whoever holds the row is using the token too, or ending it.
_TOUCH: Final = """
UPDATE compute_iam_tokens SET last_used_at = compute_now() WHERE id IN (
  SELECT id FROM compute_iam_tokens
  WHERE id = %s AND (last_used_at IS NULL OR last_used_at < compute_now() - interval '1 minute')
  FOR NO KEY UPDATE SKIP LOCKED)
"""


def digest(secret: str) -> bytes:
    """What is stored of a token. A secret of 256 random bits needs no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


@dataclass(slots=True)
class Presented:
    """A token that was presented with a call; see :class:`better_compute.BearerCredential`."""

    digest: bytes
    _due: Any = None

    def principal(self) -> Principal:
        """Look it up.

        Raises
        ------
        ComputeError
            UNAUTHENTICATED for one that is unknown, expired or revoked, or whose principal or maker may not call.
        """
        rows = compute.context("iam").sql.query(_LOOK_UP, [self.digest]).rows
        if not rows or not rows[0]["live"]:
            raise unauthenticated("The token is unknown, expired or revoked.")
        row = rows[0]
        user = principals.user_of(row["principal_id"])
        if row["principal_id"].startswith("user/") and (user is None or not user.is_active):
            raise unauthenticated("The token's user may not call any more.")
        makers = tuple(texts(row["makers"]) or ())
        if not all(principals.may_call(maker) for maker in makers):
            raise unauthenticated("Whoever made the token may not call any more; somebody else may rotate it.")
        self._due = row["id"] if row["due"] else None
        actions = texts(row["actions"])
        return Principal(
            id=f"iam-token/{row['id']}",
            kind="token",
            tenant_id=row["tenant_id"],
            user=user,
            acts_for=row["principal_id"],
            narrowed_to=Narrowing(
                tenant_id=row["tenant_id"],
                actions=None if actions is None else Patterns(tuple(actions)),
                expires_at=row["expires_at"],
                makers=makers,
            ),
        )

    def note_use(self) -> None:
        """Note the use, at most once a minute."""
        if self._due is not None:
            sql = compute.context("iam").sql
            with sql.transaction():
                sql.query("SELECT set_config('statement_timeout', %s, true)", [LONGEST_NOTE])
                sql.query(_TOUCH, [self._due])


def unauthenticated(message: str) -> ComputeError:
    """A refusal of a credential that was presented."""
    return ComputeError(
        ErrorCode.UNAUTHENTICATED,
        message,
        mend="Send `Authorization: Bearer <token>` with a token that is valid.",
        reason="INVALID_TOKEN",
    )


def texts(value: Any) -> list[str] | None:
    """A column of texts in jsonb; None where it is null."""
    found = decoded(value)
    return None if found is None else list(found)
