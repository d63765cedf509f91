"""Identity providers as the settings describe them (``COMPUTE["iam"]["PROVIDERS"]``)."""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec

from better_compute import Meta

#: Algorithms a provider may sign with: asymmetric ones only, so that no public key can be taken for a secret.
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}", re.ASCII)


class ClaimGrant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """Who has ``value`` in the claim has the role in the tenant, for as long as the claim says so."""

    claim: str
    value: str
    tenant: str
    role: str
    inherit: bool = False


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """One issuer of tokens."""

    #: Names its people: ``external/<name>/<subject>``.
    name: str
    #: The ``iss`` of its tokens, exactly.
    issuer: str
    #: What the ``aud`` of its tokens must hold: this installation.
    audience: str
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    #: Where its keys are; found through the issuer's discovery document when empty.
    jwks_url: str = ""
    #: How far its clock may be off, in seconds.
    leeway_s: Annotated[int, Meta(ge=0, le=300)] = 30
    #: Longest life of a token that is accepted, in seconds.
    max_lifetime_s: Annotated[int, Meta(ge=60)] = 86_400
    #: How long keys are used before they are fetched again, in seconds.
    keys_ttl_s: Annotated[float, Meta(ge=0)] = 300.0
    #: Least time between two fetches of the keys, in seconds.
    keys_pause_s: Annotated[float, Meta(ge=0)] = 10.0
    #: Longest that a fetch may take, in seconds.
    timeout_s: Annotated[float, Meta(gt=0, le=30)] = 3.0
    claim_grants: tuple[ClaimGrant, ...] = ()
    #: Whether what its people are granted here is theirs beyond the end of the token they call with, so that they may
    #: give it, and make scoped tokens, for longer. What claims convey ends with the token in any case.
    gifts_outlast_tokens: bool = False

    def __post_init__(self) -> None:
        """Refuse what would be unsafe; the registry reports it with its path."""
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"NAME {self.name!r} does not match ^{_NAME.pattern}$")
        unsafe = [algorithm for algorithm in self.algorithms if algorithm not in ALGORITHMS]
        if unsafe or not self.algorithms:
            raise ValueError(f"ALGORITHMS {unsafe or 'is empty'}; allowed are {', '.join(ALGORITHMS)}")
        if not self.audience:
            raise ValueError("AUDIENCE is empty, so tokens for anybody would be accepted")
        for url in (self.issuer, self.jwks_url or self.issuer):
            if not _safe(url):
                raise ValueError(f"{url!r} is neither https nor http on this machine")


_SAFE: Final = re.compile(r"https://[^/@\s]+(/\S*)?|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/\S*)?")


def _safe(url: str) -> bool:
    return _SAFE.fullmatch(url) is not None
