"""Keys of an identity provider: fetched over HTTP, kept for a while, and fetched again on rotation (RFC 7517)."""

from __future__ import annotations

import http.client
import ipaddress
import logging
import socket
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


class _PublicConnection(http.client.HTTPSConnection):
    """Connects to public addresses only, whatever the name resolves to this time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._create_connection = _connect_to_public


def _connect_to_public(address: tuple[str, int], timeout: Any = None, source_address: Any = None) -> socket.socket:
    host, port = address
    found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    inside = [each for each in found if not _is_public(each)]
    if inside or not found:
        raise ProviderUnreachable(
            f"The provider names keys at {host}, which is {', '.join(inside) or 'nowhere'}, an address of this network."
            " Set its JWKS_URL if they are there."
        )
    return socket.create_connection((found[0], port), timeout, source_address)


def _is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_global and not parsed.is_multicast


class _PublicHandler(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_PublicConnection, request)


#: To addresses that the settings name, through the proxies of the environment.
_opener: Final = urllib.request.build_opener(_NoRedirect)
#: To addresses that only a provider names. Without proxies: one would resolve the name by itself.
_public_opener: Final = urllib.request.build_opener(_NoRedirect, _PublicHandler, urllib.request.ProxyHandler({}))


def trusted_address(url: str) -> bool:
    """Whether keys may be fetched from there: https, or http on this machine itself."""
    try:
        parts = urlsplit(url)
        host, credentials = parts.hostname, parts.username is not None
    except ValueError:
        return False
    loopback = host in ("127.0.0.1", "::1", "localhost")
    return bool(host) and not credentials and (parts.scheme == "https" or (parts.scheme == "http" and loopback))


def fetch(url: str, timeout_s: float, *, public: bool = False) -> dict[str, Any]:
    """A JSON object over HTTP, within a time and a size; with ``public`` from a public address over https only.

    Raises
    ------
    ProviderUnreachable
        For whatever else came of it.
    """
    if not trusted_address(url) or (public and not url.lower().startswith("https:")):
        raise ProviderUnreachable(f"{url} is neither https nor on this machine.")
    deadline = monotonic() + timeout_s
    chunks: list[bytes] = []
    try:
        with (_public_opener if public else _opener).open(url, timeout=timeout_s) as answer:
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
    load
        Fetches the key set.
    ttl_s
        How long keys are used before they are fetched again, so that one that was withdrawn is refused.
    pause_s
        Least time between two fetches, so that tokens with made-up key ids cause no storm.
    """

    def __init__(self, load: Callable[[], dict[str, Any]], *, ttl_s: float, pause_s: float) -> None:
        self._load = load
        self._ttl_s, self._pause_s = ttl_s, pause_s
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
        # While one thread asks a provider that may be slow, the others use a key that was good until just now.
        if not self._lock.acquire(blocking=kid not in self._keys or self._age() >= MAX_STALE_S):
            return self._make(kid, algorithm)
        try:
            if kid in self._keys and self._age() < self._ttl_s:
                return self._make(kid, algorithm)
            if self._tried_at is None or monotonic() - self._tried_at >= self._pause_s:
                self._refresh(kid)
            if self._age() >= max(self._ttl_s, MAX_STALE_S):
                raise ProviderUnreachable("The keys could not be fetched for too long.")
            return self._make(kid, algorithm)
        finally:
            self._lock.release()

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
            document = self._load()
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
