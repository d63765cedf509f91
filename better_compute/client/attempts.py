"""One call's attempts, whatever sends them: what is sent, what an answer means, how long to wait for the next."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from better_compute.client.errors import ApiError, ConnectionLost
from better_compute.client.options import Options

_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)+", re.ASCII)
_HEADER: Final = re.compile(r"[!-~]+", re.ASCII)

#: Statuses after which the same call may be made again.
TRANSIENT: Final = frozenset({429, 502, 503, 504})
#: Shortest and longest wait before another attempt, in seconds.
FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 30.0


def is_method(name: str) -> bool:
    """Whether a method might be named so."""
    return _METHOD.fullmatch(name) is not None


def refuse_unsendable(options: Options) -> None:
    """Raise ValueError for an option that no header carries."""
    for name in ("idempotency_key", "request_id"):
        value = getattr(options, name)
        if value is not None and _HEADER.fullmatch(value) is None:
            raise ValueError(f"{name} is {value[:80]!r}; use visible ASCII characters, at least one.")


@dataclass(frozen=True, slots=True)
class Call:
    """What every attempt of one call sends."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @classmethod
    def of(cls, method: str, input: Any, options: Options, *, mutation: bool) -> Call:
        """Prepare ``plugins.acme.widgets.poke`` with this input; fields that are UNSET are left out.

        Raises
        ------
        ValueError
            For what is no method's name, since it might name another server, and for an option that no header carries.
        """
        if not is_method(method):
            raise ValueError(f"{method[:80]!r} is no method's name; write it as group.method.")
        refuse_unsendable(options)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, application/problem+json",
            "Accept-Encoding": "identity",
        }
        if mutation and not options.dry_run:
            headers["Idempotency-Key"] = options.idempotency_key or str(uuid.uuid4())
        if options.request_id is not None:
            headers["X-Request-Id"] = options.request_id
        query = "?dryRun=true" if mutation and options.dry_run else ""
        given = {} if input is None else input
        if isinstance(given, Mapping):
            given = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        return cls(method.replace(".", "/") + query, headers, msgspec.json.encode(given))


@dataclass(slots=True)
class Attempts:
    """The attempts of one call: ``left`` further ones may be made, each of ``timeout_s`` seconds."""

    method: str
    call: Call
    timeout_s: float
    left: int
    made: int = 0

    @classmethod
    def of(
        cls, method: str, input: Any, options: Options, *, mutation: bool, retries: int, timeout_s: float
    ) -> Attempts:
        """Prepare a call; raises as :meth:`Call.of`."""
        call = Call.of(method, input, options, mutation=mutation)
        return cls(method, call, timeout_s if options.timeout_s is None else options.timeout_s, retries)

    def wait_s(self, error: Exception) -> float:
        """Seconds to wait before the attempt after the one that ``error`` ended.

        Raises
        ------
        ApiError
            The refusal, when there is to be no other attempt.
        ConnectionLost
            No answer came, and there is to be no other attempt.
        """
        refused = error if isinstance(error, ApiError) else None
        busy = refused is not None and refused.reason == "IDEMPOTENCY_KEY_BUSY"
        wanted = refused.retry_after_s if refused is not None and refused.retry_after_s is not None else 0.0
        passes = refused is None or busy or refused.problem.status in TRANSIENT
        if not passes or self.left <= 0 or wanted > LONGEST_WAIT_S:
            if refused is not None:
                raise refused
            raise lost(self.method, error) from error
        self.left -= 1
        self.made += 1
        backoff: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self.made - 1))
        # Jitter keeps callers that were refused together from coming back together.
        return max(wanted, backoff * (0.5 + random.random() / 2))  # noqa: S311 - no secret


def lost(what: str, error: Exception) -> ConnectionLost:
    """What ``what`` is told to have met when no answer came."""
    # Some of httpx's and asyncio's have no text.
    told = str(error) or ("the attempt took too long" if isinstance(error, TimeoutError) else type(error).__name__)
    return ConnectionLost(f"{what}: {told}")
