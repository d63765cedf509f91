"""Methods: what a module offers over REST and in process, declared beside the code that serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta

from better_compute.contract import names
from better_compute.contract.sql import Sql

MethodKind = Literal["mutation", "query"]
#: States of a tenant, besides active, in which a method may be called; ``"any"`` means it judges the state itself.
AlsoWhile = Literal["any"] | frozenset[str]

TenantId = Annotated[str, Meta(pattern=names.TENANT_ID_PATTERN)]


#: Marks a field of an answer that is shown once: it is not kept with an Idempotency-Key.
SHOWN_ONCE = "x-shown-once"
Secret = Annotated[str, Meta(extra_json_schema={SHOWN_ONCE: True})]


class Input(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Base of every method's input: camelCase on the wire, unknown fields refused."""


class Output(msgspec.Struct, rename="camel", kw_only=True):
    """Base of every method's answer: camelCase on the wire."""


class Empty(Input):
    """The input of a method that takes none: ``{}`` or no body."""


@dataclass(frozen=True, slots=True)
class Resource:
    """What a call acts on. ``type`` is ``tenant``, ``system`` or one of the catalog's resource types."""

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A resource type of the catalog.

    ``resolve(sql, id)`` reads the tenant that owns the record, or None when there is no such record. It
    runs inside the call's transaction before authorization; a record of another tenant reads NOT_FOUND.

    ``resolve_many(sql, ids)`` reads the tenants of many records in one statement, by id, without those that are not
    there. A type that has none is asked record by record.
    """

    resolve: Callable[[Sql, str], str | None]
    resolve_many: Callable[[Sql, Sequence[str]], Mapping[str, str]] | None = None

    def owners(self, sql: Sql, ids: Sequence[str]) -> Mapping[str, str]:
        """The tenants that own these records, by id, without those that are not there."""
        if self.resolve_many is not None:
            return self.resolve_many(sql, ids)
        found = ((id, self.resolve(sql, id)) for id in ids)
        return {id: owner for id, owner in found if owner is not None}


@dataclass(frozen=True, slots=True)
class Catalog:
    """The actions a module's methods may name, and the resource types they may act on."""

    actions: Sequence[str] = ()
    resource_types: Mapping[str, ResourceType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A method that will go. Callers are told by headers (RFC 9745, RFC 8594), the document and the clients.

    Parameters
    ----------
    since
        The day from which it is deprecated.
    use
        What to call instead, a dotted name or a sentence.
    sunset
        The day from which it may be gone.

    Raises
    ------
    ValueError
        When it says nothing to use instead, or a sunset that is not after ``since``.
    """

    since: date
    use: str
    sunset: date | None = None

    def __post_init__(self) -> None:
        if not self.use.strip():
            raise ValueError("Deprecation(use='') leaves callers with nothing to call; name what takes its place.")
        if self.sunset is not None and self.sunset <= self.since:
            raise ValueError(
                f"Deprecation(sunset={self.sunset}) is not after since={self.since}; leave callers time to change."
            )

    def notice(self) -> str:
        """What callers are told, everywhere in the same words."""
        gone = f" It may be gone from {self.sunset}." if self.sunset else ""
        return f"Deprecated since {self.since}: use {self.use}.{gone}"


@dataclass(frozen=True, slots=True)
class MethodDeclaration:
    """What :func:`compute_method` leaves on the function it decorates."""

    action: str
    kind: MethodKind
    resource: Callable[[Any], Resource]
    also_while: AlsoWhile = frozenset()
    deprecated: Deprecation | None = None


_Method = TypeVar("_Method", bound=Callable[..., Any])

#: Attribute under which the declaration stands on the function.
DECLARATION = "compute_declaration"


def compute_method(
    *,
    action: str,
    kind: MethodKind,
    resource: Callable[[Any], Resource],
    also_while: Iterable[str] = (),
    deprecated: Deprecation | None = None,
) -> Callable[[_Method], _Method]:
    """Offer a method of a ``ComputeViewSet`` over REST and in process.

    The decorated method takes ``(self, ctx, input)``, where ``input`` is annotated with an :class:`Input`
    and the return with an :class:`Output` (or any type msgspec encodes); without ``input`` it takes
    :class:`Empty`. It runs inside the envelope's one transaction: its rows, events and work items commit
    together or not at all.

    Parameters
    ----------
    action
        An action of the module's catalog, ``compute:<area>:<verb>``.
    kind
        ``mutation`` answers POST only and is audited; ``query`` answers GET too, runs read-only and is
        audited only when denied.
    resource
        Maps the decoded input to the resource that authorization judges. It must not query.
    also_while
        States of the resource's tenant, besides active, in which the method may be called: ``suspended``,
        ``deleting``, ``torn_down``, or the string ``"any"`` for a method that judges the state itself. A query may
        always be called while its tenant is suspended. A mutation that removes what blocks a teardown says
        ``("deleting",)``.
    deprecated
        Since when, what to use instead, and from when it may be gone.
    """
    # A bare string is iterable too: "any" must not become a set of letters.
    states: AlsoWhile = "any" if also_while == "any" else frozenset(also_while)

    def declare(function: _Method) -> _Method:
        declaration = MethodDeclaration(
            action=action, kind=kind, resource=resource, also_while=states, deprecated=deprecated
        )
        setattr(function, DECLARATION, declaration)
        return function

    return declare


class MethodGroup:
    """What the registry looks for in a module's ``api``; ``ComputeViewSet`` is the one to subclass.

    ``group`` defaults to the class name with a small first letter: ``Widgets`` is ``widgets``.
    """

    group: ClassVar[str] = ""

    @classmethod
    def group_name(cls) -> str:
        """The group's name in routes and clients."""
        return cls.group or cls.__name__[:1].lower() + cls.__name__[1:]


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """One method as the registry froze it."""

    module: str
    plugin_id: str | None
    group: str
    #: The Python attribute on ``viewset``.
    attribute: str
    action: str
    kind: MethodKind
    resource: Callable[[Any], Resource]
    input_type: type[Any]
    #: Whether the function takes an input argument.
    takes_input: bool
    output_type: Any
    summary: str
    viewset: type[MethodGroup]
    also_while: AlsoWhile = frozenset()
    deprecated: Deprecation | None = None

    @property
    def name(self) -> str:
        """The method's name on the wire, camelCase."""
        return names.camel_case(self.attribute)

    @property
    def path(self) -> str:
        """Path below ``/api/compute/``: ``plugins/acme/widgets/poke`` or ``system/selfCheck``."""
        prefix = f"plugins/{self.plugin_id}/" if self.plugin_id else ""
        return f"{prefix}{names.camel_case(self.group)}/{self.name}"

    @property
    def dotted(self) -> str:
        """``plugins.acme.widgets.poke``: how clients, audit and the method table name it."""
        return self.path.replace("/", ".")
