"""What may be told of an exception: enough to act on, without secrets and without the values of a statement."""

from __future__ import annotations

import re
from typing import Final

import psycopg
from django.db.utils import Error as DjangoDatabaseError

from better_compute.contract.errors import ComputeError

#: Longest text that is told, in characters.
LONGEST: Final = 400

#: SQLSTATE classes and codes whose message names objects of the schema or roles and holds no value of a row.
_TELLING: Final = ("22012", "23", "25", "40", "42", "53", "55", "57")

_SECRETS: Final = (
    # user:password@ in an address
    (re.compile(r"(?<=://)[^/\s@]+@"), "...@"),
    # password=..., token: ..., 'secret': '...'
    (
        re.compile(r"(?i)\b([\w-]*(?:passw(?:or)?d|secret|token|api[_-]?key|authorization)[\w-]*['\"]?\s*[=:]\s*)\S+"),
        r"\1...",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+\S+"), r"\1 ..."),
)


def describe_failure(failure: BaseException) -> str:
    """Return one line that names the failure.

    An error of the database is told by its class and SQLSTATE, with PostgreSQL's own sentence only where
    that names objects and not values; DETAIL and parameters never. Anything else is told by its first line
    with passwords, tokens and the like blotted out.
    """
    if isinstance(failure, ComputeError):
        return _bounded(str(failure))
    cause = failure.__cause__ if isinstance(failure, DjangoDatabaseError) else failure
    if isinstance(cause, psycopg.Error):
        return _bounded(_database(cause))
    first = str(failure).strip().partition("\n")[0]
    return _bounded(f"{type(failure).__name__}: {_blot(first)}" if first else type(failure).__name__)


def _database(error: psycopg.Error) -> str:
    state = error.sqlstate
    if state is None:
        # libpq's own words, e.g. that nothing listens on the port; it never repeats the password.
        words = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {_blot(words)}"
    said = error.diag.message_primary if state.startswith(_TELLING) else None
    return f"{type(error).__name__} (SQLSTATE {state})" + (f": {said}" if said else "")


def _blot(text: str) -> str:
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _bounded(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
