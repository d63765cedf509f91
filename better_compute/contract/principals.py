"""Who calls, how it shows who it is, and who judges what it may do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from better_compute.contract.methods import Resource
from better_compute.contract.sql import Expression


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls. ``tenant_id`` is the tenant a token carries; a session of an operator has none."""

    id: str
    kind: Literal["session", "token", "internal"]
    tenant_id: str | None = None
    #: The Django user behind it, for the default authorizer; None for internal callers.
    user: Any = field(default=None, compare=False, repr=False)
    #: Whose rights count, when ``id`` names a credential: ``user/7`` or ``service/ci``. Empty: those of ``id``.
    acts_for: str = ""
    #: What the credential narrows those rights to; made by an authenticator and read by its authorizer.
    narrowed_to: Any = field(default=None, compare=False, repr=False)
    #: When a core token ends, so that an authorizer can let nothing that is given with it last longer.
    ends_at: datetime | None = field(default=None, compare=False)


class BearerCredential(Protocol):
    """A bearer credential that an authenticator knows by its form."""

    def principal(self) -> Principal:
        """Look it up, as the call's second statement.

        Raises
        ------
        ComputeError
            UNAUTHENTICATED for what is unknown, revoked or expired by the database's clock.
        """
        ...

    def note_use(self) -> None:
        """Note that a call was made with it; runs after the call, outside of its transaction."""
        ...


class Authenticator(Protocol):
    """Knows callers by bearer credentials of its own, served as port ``authenticator``."""

    def recognise(self, secret: str) -> BearerCredential | None:
        """Judge a bearer credential as far as that takes no database; None when it has not this authenticator's form.

        Runs outside of the call's transaction, so it may fetch keys. Raises UNAUTHENTICATED for a credential of its
        own form that is no good.
        """
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """An authorizer's answer. ``visible`` False makes a denial read NOT_FOUND instead of ACCESS_DENIED."""

    allowed: bool
    visible: bool = True
    reason: str = ""


class Authorizer(Protocol):
    """Who may do what. Default deny: anything not allowed is refused.

    One may also have ``tenants_allowed(principal, action)``, which answers the tenants in which it would allow the
    action on the tenant as a whole, or None for every one; lists of the admin are read by it.
    """

    def authorize(self, principal: Principal, action: str, resource: Resource, tenant_id: str | None) -> Decision:
        """Judge ``action`` on ``resource``, which ``tenant_id`` owns (None: the installation itself)."""
        ...


class AheadAuthorizer(Authorizer, Protocol):
    """An authorizer that lets the first statement of a call read what it needs, which spares it a statement."""

    def reading(self) -> Expression:
        """What to read; one value that can be cast to text. It takes no lock."""
        ...

    def authorize_ahead(
        self,
        principal: Principal,
        action: str,
        resource: Resource,
        tenant_id: str | None,
        *,
        read: str | None,
        at: datetime,
    ) -> Decision:
        """As :meth:`authorize`, with what :meth:`reading` came to in this transaction, and the call's time."""
        ...


class RoleMatrix(Protocol):
    """What roles come to, served as port ``role-matrix`` by a module that judges by roles."""

    def roles(self) -> Sequence[str]:
        """The roles that every installation has."""
        ...

    def relations(self) -> Sequence[str]:
        """How a call's tenant may stand to the one in which the role is granted; ``own`` first."""
        ...

    def outcome(self, role: str, action: str, relation: str, *, installation: bool) -> str:
        """``allowed``, or the code of the refusal; ``installation`` for what acts on no tenant."""
        ...
