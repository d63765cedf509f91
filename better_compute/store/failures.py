"""What may be told of an exception: enough to act on, without secrets and without the values of a statement."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from typing import Final

import psycopg
from django.db.utils import Error as DjangoDatabaseError

from better_compute.contract.errors import ComputeError

#: Longest text that is told, in characters.
LONGEST: Final = 400

#: How much of a line is looked at, in characters: what a stranger's server answered may be of any size.
READ: Final = 4_096

#: SQLSTATE classes and codes whose message names objects of the schema or roles and holds no value of a row.
_TELLING: Final = ("22012", "23", "25", "2B", "3F", "40", "42", "53", "55", "57")

#: SQLSTATEs of a table, a column or a function that is not there: migrations wait.
NOT_MIGRATED: Final = frozenset({"42P01", "42703", "42883"})

#: A value as it may follow a name: in quotes, of a string or of bytes, or up to the next space.
_VALUE: Final = r"""(?:b?'(?:[^'\\]|\\.)*'?|b?"(?:[^"\\]|\\.)*"?|\S+)"""

_NAME: Final = (
    r"[\w-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|(?:api|access|private)[_-]?key|credential|authorization|cookie)"
    r"[\w-]*"
)

# In this order: what a wider pattern leaves of a value must hold nothing of it.
_SECRETS: Final = (
    # A header's value runs to the end of its line.
    (re.compile(r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)(?!['\"\s]).*"), r"\1\2..."),
    # user:password@ in an address, where a password may hold @ and /
    (re.compile(r"(?<=://)[^\s'\"]*@"), "...@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s'\"]+"), r"\1 ..."),
    # password=..., token: ..., 'secret': '...'
    (re.compile(rf"(?i)\b({_NAME}['\"]?\s*(?:=>|[=:])\s*){_VALUE}"), r"\1..."),
    # Tokens of this project and JWTs, wherever they stand.
    (re.compile(r"\bbc[ti]_[\w-]+|\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?"), "..."),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*"), "-----BEGIN PRIVATE KEY----- ..."),
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


def connection_lost(failure: BaseException) -> bool:
    """Whether ``failure``, of Django or of the driver, says that the connection ended: the server, or the way to it."""
    cause = failure.__cause__ if isinstance(failure, DjangoDatabaseError) else failure
    if not isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    # Without a state it is libpq that speaks: the server said no more.
    return cause.sqlstate is None or cause.sqlstate.startswith("08") or cause.sqlstate in {"57P01", "57P02", "57P03"}


def dependents(failure: BaseException) -> str | None:
    """What PostgreSQL says stands on a thing that was to be dropped, by kind and name; None for any other failure."""
    cause = failure.__cause__ if isinstance(failure, DjangoDatabaseError) else failure
    if not isinstance(cause, psycopg.errors.DependentObjectsStillExist):
        return None
    # This DETAIL names objects only, a line each.
    return _bounded("; ".join((cause.diag.message_detail or "other objects").splitlines()))


def trace_failure(failure: BaseException, *, state_only: bool = False) -> str:
    """Return the stack of a failure and of what it came from, for a log: as Python prints it, but with
    :func:`describe_failure` in the place of each exception's own text, which may hold what no log should.

    With ``state_only`` nothing is told of a database's error but its class and SQLSTATE: the sentence of a trigger's
    or a block's own RAISE may hold anything, under any state.
    """
    told = []
    for each in _chain(failure):
        stack = "".join(traceback.format_tb(each.__traceback__))
        inside = "".join(f"\n  with {_told(part, state_only)}" for part in getattr(each, "exceptions", ()))
        told.append(f"Traceback (most recent call last):\n{stack}{_told(each, state_only)}{inside}")
    return "\n\nwhich led to\n\n".join(reversed(told))


def _told(failure: BaseException, state_only: bool) -> str:
    cause = failure.__cause__ if isinstance(failure, DjangoDatabaseError) else failure
    if state_only and isinstance(cause, psycopg.Error):
        return f"{type(cause).__name__} (SQLSTATE {cause.sqlstate})"
    return describe_failure(failure)


def _chain(failure: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    each: BaseException | None = failure
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def _database(error: psycopg.Error) -> str:
    state = error.sqlstate
    if state is None:
        # libpq's own words, e.g. that nothing listens on the port; it never repeats the password.
        words = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {_blot(words)}"
    # What a connection met is told by libpq or by ourselves, not by the server.
    said = error.diag.message_primary if state.startswith(_TELLING) else _blot(str(error)) if state[:2] == "08" else ""
    return f"{type(error).__name__} (SQLSTATE {state})" + (f": {said}" if said else "")


def _blot(text: str) -> str:
    text = text[:READ]
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _bounded(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
