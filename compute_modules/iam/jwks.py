"""Keys of an identity provider: fetched over HTTP, kept for a while, and fetched again on rotation (RFC 7517)."""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections.abc import Callable
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
import msgspec

log = logging.getLogger("better_compute.module.iam")

#: Largest document that is read, in bytes.
MAX_BYTES: Final = 262_144
#: Most keys that a document may hold.
MAX_KEYS: Final = 100
#: How long keys are used that cannot be fetched again, in seconds.
MAX_STALE_S: Final = 3_600.0


class ProviderUnreachable(Exception):
    """The provider's documents cannot be had, or make no sense."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A provider that redirects is refused: the address in the settings is the one that is trusted."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_opener: Final = urllib.request.build_opener(_NoRedirect)


def trusted_address(url: str) -> bool:
    """Whether keys may be fetched from there: https, or http on this machine itself."""
    parts = urlsplit(url)
    loopback = parts.hostname in ("127.0.0.1", "::1", "localhost")
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and loopback))


def fetch(url: str, timeout_s: float) -> dict[str, Any]:
    """A JSON object over HTTP, within a time and a size.

    Raises
    ------
    ProviderUnreachable
        For whatever else came of it.
    """
    if not trusted_address(url):
        raise ProviderUnreachable(f"{url} is neither https nor on this machine.")
    deadline = monotonic() + timeout_s
    chunks: list[bytes] = []
    try:
        with _opener.open(url, timeout=timeout_s) as answer:
            # A peer that sends a byte now and then must not hold the caller for ever.
            while chunk := answer.read1(65_536):
                chunks.append(chunk)
                if sum(map(len, chunks)) > MAX_BYTES:
                    raise ProviderUnreachable(f"{url} sent more than {MAX_BYTES} bytes.")
                if monotonic() > deadline:
                    raise ProviderUnreachable(f"{url} took longer than {timeout_s} s.")
        return msgspec.json.decode(b"".join(chunks), type=dict[str, Any])
    except ProviderUnreachable:
        raise
    except Exception as error:
        raise ProviderUnreachable(f"{url}: {type(error).__name__}.") from error


class KeySet:
    """The keys of one provider, shared by threads.

    Parameters
    ----------
    locate
        Returns the address of the keys; may fetch it.
    ttl_s
        How long keys are used before they are fetched again, so that one that was withdrawn is refused.
    pause_s
        Least time between two fetches, so that tokens with made-up key ids cause no storm.
    """

    def __init__(self, locate: Callable[[], str], *, ttl_s: float, pause_s: float, timeout_s: float) -> None:
        self._locate = locate
        self._ttl_s, self._pause_s, self._timeout_s = ttl_s, pause_s, timeout_s
        self._lock = threading.Lock()
        self._keys: dict[str, dict[str, Any]] = {}
        self._made: dict[tuple[str, str], jwt.PyJWK] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None

    def key(self, kid: str, algorithm: str) -> jwt.PyJWK | None:
        """The key of this id, None when the provider has none that is for this algorithm.

        Raises
        ------
        ProviderUnreachable
            When it is unknown here and the provider cannot be asked.
        """
        if kid in self._keys and self._age() < self._ttl_s:
            return self._make(kid, algorithm)
        with self._lock:
            if kid in self._keys and self._age() < self._ttl_s:
                return self._make(kid, algorithm)
            if self._tried_at is None or monotonic() - self._tried_at >= self._pause_s:
                self._refresh(kid)
            if self._age() >= max(self._ttl_s, MAX_STALE_S):
                raise ProviderUnreachable("The keys could not be fetched for too long.")
            return self._make(kid, algorithm)

    def _make(self, kid: str, algorithm: str) -> jwt.PyJWK | None:
        entry = self._keys.get(kid)
        if entry is None or entry.get("alg", algorithm) != algorithm:
            return None
        if (kid, algorithm) not in self._made:
            try:
                self._made[kid, algorithm] = jwt.PyJWK.from_dict(entry, algorithm)
            except jwt.PyJWTError as error:
                # Of another kind than the algorithm needs: the token claims what its issuer's key cannot have done.
                log.warning("a key of the provider cannot be used for %s: %s", algorithm, type(error).__name__)
                return None
        return self._made[kid, algorithm]

    def _refresh(self, kid: str) -> None:
        self._tried_at = monotonic()
        try:
            document = fetch(self._locate(), self._timeout_s)
            self._keys, self._made = _usable(document), {}
            self._fetched_at = monotonic()
        except ProviderUnreachable as error:
            if kid not in self._keys:
                raise
            log.warning("keys could not be fetched again, those of %.0f s ago are used: %s", self._age(), error)

    def _age(self) -> float:
        return float("inf") if self._fetched_at is None else monotonic() - self._fetched_at


def _usable(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Public keys for signatures, by id. Shared secrets are left out, and so is whatever a key must not hold."""
    entries = document.get("keys")
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise ProviderUnreachable(f"The key set is no list of at most {MAX_KEYS} keys.")
    return {
        entry["kid"]: {name: value for name, value in entry.items() if name != "d"}
        for entry in reversed(entries)
        if isinstance(entry, dict)
        and isinstance(entry.get("kid"), str)
        and entry.get("use", "sig") == "sig"
        and entry.get("kty") != "oct"
    }
