"""Reads what came back without trusting it: a proxy, a captive portal or somebody else's server may have answered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from better_compute.client.errors import BadAnswer, error_of

#: Largest answer that is read, in bytes.
MOST_BYTES: Final = 64 * 1024 * 1024
_JSON: Final = ("application/json", "application/problem+json")


class Body:
    """The body of an answer as it arrives, never more than ``most_bytes`` of it.

    Raises
    ------
    BadAnswer
        For one that is larger, and by its headers alone for one that is packed although nobody asked for it to be: a
        few kilobytes could unpack to any size.
    """

    def __init__(self, headers: Mapping[str, str], most_bytes: int) -> None:
        packed = headers.get("Content-Encoding", "identity")
        if packed.strip().lower() not in ("", "identity"):
            raise BadAnswer(f"The answer is packed as {packed[:40]!r}, which was not asked for.")
        length = headers.get("Content-Length", "")
        if length.isascii() and length.isdigit() and int(length) > most_bytes:
            raise _too_large(most_bytes)
        self._most_bytes = most_bytes
        self._arrived = bytearray()

    def take(self, part: bytes) -> None:
        """Add what arrived."""
        self._arrived += part
        if len(self._arrived) > self._most_bytes:
            raise _too_large(self._most_bytes)

    def whole(self) -> bytes:
        """Everything that arrived."""
        return bytes(self._arrived)


def _too_large(most_bytes: int) -> BadAnswer:
    return BadAnswer(f"The answer has more than {most_bytes} bytes. Ask for less, or raise most_answer_bytes.")


def read(status: int, headers: Mapping[str, str], body: bytes, answer: Any) -> Any:
    """The answer as ``answer``.

    Raises
    ------
    ApiError
        The refusal's.
    BadAnswer
        No method of ours answers so.
    """
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if 300 <= status < 400:
        where = headers.get("Location", "")
        raise error_of(
            status,
            b"",
            None,
            f"The server redirects to {where[:200]!r}, where the token is not taken; give that address if it is yours.",
        )
    if status != 200:
        return _refused(status, headers, body if kind in _JSON else b"")
    if kind != "application/json":
        raise BadAnswer(f"The answer is {kind[:60]!r} instead of JSON. Is it the installation that answers?")
    try:
        return msgspec.json.decode(body, type=answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"The answer is not what the method declares: {error}") from None


def _refused(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    raise error_of(status, body, seconds(headers.get("Retry-After")))


def seconds(text: str | None) -> float | None:
    """``Retry-After`` in seconds; None for a date, which would need two clocks to agree, and for nonsense."""
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    wait = float(text)
    return wait if math.isfinite(wait) else None
