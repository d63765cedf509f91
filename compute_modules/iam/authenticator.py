"""The port ``authenticator``: callers by bearer credentials that this module knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from better_compute import BearerCredential, ComputeError, ErrorCode, ModuleContext

from . import presented
from .apps import Options


@dataclass(slots=True)
class AuthenticatorPort:
    """See :class:`better_compute.contract.principals.Authenticator`. It is made once for a registry."""

    ctx: ModuleContext
    _verify: Callable[[str], Any] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Look at the settings: PyJWT is needed only where they name a provider."""
        options: Options = self.ctx.options
        if options.providers:
            try:
                from .oidc import Verifier, recognise
            except ImportError as error:
                raise ComputeError(
                    ErrorCode.INVALID_CONFIG,
                    f"COMPUTE['iam']['PROVIDERS'] needs a package that is not installed: {error.name}.",
                    mend="Install better-compute[oidc].",
                ) from error
            verifiers = {provider.issuer: Verifier(provider) for provider in options.providers}
            self._verify = lambda secret: recognise(secret, verifiers)

    def recognise(self, secret: str) -> BearerCredential | None:
        """A scoped token by its form, or a token of a provider; None for any other credential."""
        if presented.FORM.fullmatch(secret) is not None:
            return presented.Presented(presented.digest(secret))
        if self._verify is not None:
            found: BearerCredential | None = self._verify(secret)
            return found
        return None
