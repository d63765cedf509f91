"""The port ``authenticator``: callers by bearer credentials that this module knows."""

from __future__ import annotations

from dataclasses import dataclass

from better_compute import BearerCredential, ModuleContext

from . import tokens


@dataclass(frozen=True, slots=True)
class AuthenticatorPort:
    """See :class:`better_compute.contract.ports.Authenticator`."""

    ctx: ModuleContext

    def recognise(self, secret: str) -> BearerCredential | None:
        """A scoped token by its form; None for any other credential."""
        if tokens.FORM.fullmatch(secret) is not None:
            return tokens.Presented(tokens.digest(secret))
        return None
