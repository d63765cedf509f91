"""Callers with a token of an identity provider (OpenID Connect, RFC 7519, RFC 8725)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
import msgspec

from better_compute import ComputeError, ErrorCode, Principal, compute

from .evaluation import Narrowing
from .facts import Grant
from .jwks import KeySet, ProviderUnreachable, fetch
from .patterns import Patterns
from .presented import unauthenticated
from .projection import projection
from .providers import Provider

#: Three parts of base64url; anything longer than a header can be is no token.
FORM: Final = re.compile(r"[A-Za-z0-9_-]{1,4096}\.[A-Za-z0-9_-]{1,12288}\.[A-Za-z0-9_-]{0,4096}", re.ASCII)
#: 9999-01-01, in seconds since 1970: later than any end that is meant, and a leeway may still be added to it.
_LATEST: Final = 253_370_764_800
_SUBJECT: Final = re.compile(r"[!-~]{1,200}", re.ASCII)
#: Types of JWT that stand for a caller; a logout token, for one, does not.
_TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})


class _Header(msgspec.Struct):
    alg: str
    kid: str = ""
    typ: str = ""
    crit: Any = None
    b64: Any = None


class Verifier:
    """Tokens of one provider."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._keys = KeySet(self._load, ttl_s=provider.keys_ttl_s, pause_s=provider.keys_pause_s)

    def verify(self, secret: str, header: _Header) -> Mapping[str, Any]:
        """The claims of a token whose signature, issuer and audience are right. Times are judged in the call.

        Raises
        ------
        ComputeError
            UNAUTHENTICATED; STORAGE_BUSY when the provider's keys are needed and cannot be had.
        """
        if header.alg not in self.provider.algorithms:
            raise unauthenticated(f"The token is signed with {header.alg[:20]!r}, which is not allowed.")
        if header.crit is not None or header.b64 is not None or header.typ.lower() not in _TYPES:
            raise unauthenticated("The token is of a type that stands for no caller.")
        try:
            key = self._keys.key(header.kid, header.alg)
        except ProviderUnreachable as error:
            raise ComputeError(
                ErrorCode.STORAGE_BUSY,
                f"The keys of the identity provider {self.provider.name!r} cannot be had now.",
                mend="Try again; if it stays so, see that this server reaches the provider.",
                retry_after=5,
                reason="PROVIDER_UNREACHABLE",
            ) from error
        if key is None:
            raise unauthenticated("The token is signed with a key that its issuer does not have.")
        try:
            return jwt.decode(
                secret,
                key,
                algorithms=[header.alg],
                audience=self.provider.audience,
                issuer=self.provider.issuer,
                # By the database's clock, in the call.
                options={
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                    "require": ["exp", "iat", "iss", "aud", "sub"],
                },
            )
        except jwt.PyJWTError as error:
            raise unauthenticated(f"The token is no good: {type(error).__name__}.") from error

    def _load(self) -> dict[str, Any]:
        """The key set, from where the settings say, or else from where the provider says.

        A provider is trusted to say who its people are, not to send this server about its own network: keys on
        another host than the issuer's are fetched from public addresses only.
        """
        timeout_s = self.provider.timeout_s
        if self.provider.jwks_url:
            return fetch(self.provider.jwks_url, timeout_s)
        address = self.provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
        document = fetch(address, timeout_s)
        keys = document.get("jwks_uri")
        if document.get("issuer") != self.provider.issuer or not isinstance(keys, str):
            raise ProviderUnreachable(f"{address} speaks for another issuer.")
        return fetch(keys, timeout_s, public=not _same_host(keys, self.provider.issuer))


def _same_host(one: str, other: str) -> bool:
    try:
        a, b = urlsplit(one), urlsplit(other)
        return (a.scheme, a.hostname, a.port) == (b.scheme, b.hostname, b.port)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Presented:
    """A token that was verified; see :class:`better_compute.BearerCredential`."""

    provider: Provider
    claims: Mapping[str, Any]

    def principal(self) -> Principal:
        """Judge its times by the database's clock. Raises UNAUTHENTICATED."""
        at = projection.read(compute.context("iam")).at
        ends = _check_times(self.provider, self.claims, at)
        id = f"external/{self.provider.name}/{self.claims['sub']}"
        return Principal(
            id=id,
            kind="token",
            acts_for=id,
            narrowed_to=Narrowing(
                expires_at=None if self.provider.gifts_outlast_tokens else ends,
                carried=_carried(self.provider, id, self.claims, ends),
            ),
        )

    def note_use(self) -> None:
        """Nothing is kept of such a token."""


def recognise(secret: str, verifiers: Mapping[str, Verifier]) -> Presented | None:
    """Verify a JWT of a known issuer; None for what is no JWT.

    Raises
    ------
    ComputeError
        UNAUTHENTICATED for a JWT that is no good or of an issuer that the settings do not know.
    """
    if FORM.fullmatch(secret) is None:
        return None
    try:
        header = msgspec.json.decode(jwt.utils.base64url_decode(secret.partition(".")[0]), type=_Header)
        payload = msgspec.json.decode(jwt.utils.base64url_decode(secret.split(".")[1]), type=dict[str, Any])
    except Exception as error:
        raise unauthenticated("The token cannot be read.") from error
    issuer = payload.get("iss")
    verifier = verifiers.get(issuer) if isinstance(issuer, str) else None
    if verifier is None:
        raise unauthenticated("The token is of an issuer that is not known here.")
    claims = verifier.verify(secret, header)
    if not isinstance(claims["sub"], str) or _SUBJECT.fullmatch(claims["sub"]) is None:
        raise unauthenticated("The token's subject is empty, too long or not printable.")
    return Presented(verifier.provider, claims)


def _check_times(provider: Provider, claims: Mapping[str, Any], at: datetime) -> datetime:
    """When the token is refused from on. Raises UNAUTHENTICATED when it is already, or not good yet."""
    leeway = timedelta(seconds=provider.leeway_s)
    ends, issued = _time(claims, "exp"), _time(claims, "iat")
    begins = _time(claims, "nbf") if "nbf" in claims else issued
    if at >= ends + leeway:
        raise unauthenticated(f"The token ended at {ends:%Y-%m-%dT%H:%M:%SZ}.")
    if at < begins - leeway or at < issued - leeway:
        raise unauthenticated(f"The token begins at {max(begins, issued):%Y-%m-%dT%H:%M:%SZ}, in the future.")
    if ends - issued > timedelta(seconds=provider.max_lifetime_s):
        raise unauthenticated(f"The token lives longer than the {provider.max_lifetime_s} s that are allowed.")
    return ends + leeway


def _time(claims: Mapping[str, Any], name: str) -> datetime:
    value = claims[name]
    try:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST:
            raise TypeError(name)
        return datetime.fromtimestamp(value, tz=UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise unauthenticated(f"The token's {name} is no time.") from None


def _carried(provider: Provider, principal: str, claims: Mapping[str, Any], ends: datetime) -> tuple[Grant, ...]:
    """The grants that the settings map the token's claims to; they end with it."""
    found = []
    for each in provider.claim_grants:
        value = claims.get(each.claim)
        if value == each.value or (isinstance(value, list) and each.value in value):
            found.append(
                Grant(
                    id=f"claim:{each.claim}={each.value}",
                    principal=principal,
                    effect="permit",
                    role=each.role,
                    patterns=Patterns(),
                    tenant=each.tenant,
                    resource=None,
                    inherit=each.inherit,
                    starts_at=None,
                    expires_at=ends,
                )
            )
    return tuple(found)
