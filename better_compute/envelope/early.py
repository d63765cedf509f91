"""What is done ahead of a call's first statement, so that it can read what the call will need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from better_compute.contract import names
from better_compute.contract.errors import ComputeError
from better_compute.contract.methods import MethodSpec, Resource
from better_compute.contract.sql import Expression
from better_compute.engine.contexts import served_port
from better_compute.envelope.authorize import authorizer
from better_compute.store import preamble


@dataclass(frozen=True, slots=True)
class Early:
    """Input and resource, decoded before the first statement so that it can read what they need.

    What is wrong with them is told only after the caller is known.
    """

    input: Any = None
    resource: Resource | None = None
    error: Exception | None = None

    @classmethod
    def of(cls, decode: Callable[[], Any], spec: MethodSpec) -> Early:
        try:
            input = decode()
            return cls(input, spec.resource(input))
        except Exception as error:
            return cls(error=error)

    def outcome(self) -> tuple[Any, Resource]:
        if self.error is not None:
            raise self.error
        assert self.resource is not None  # noqa: S101 - there is one where there is no error
        return self.input, self.resource


def ahead(spec: MethodSpec, early: Early) -> tuple[str | None, Expression]:
    """What the first statement reads besides, as an array: a query's tenant's state, and what the authorizer needs."""
    tenant_id, state = _state_reading(spec, early)
    needed = _authorizers_reading()
    if tenant_id is None and needed is preamble.NO_READING:
        return None, preamble.NO_READING
    both = f"ARRAY[({state.sql})::text, ({needed.sql})::text]"
    return tenant_id, Expression(both, [*state.params, *needed.params])


def _state_reading(spec: MethodSpec, early: Early) -> tuple[str | None, Expression]:
    resource = early.resource
    tenants = served_port("tenants")
    if resource is None or resource.type != "tenant" or tenants is None:
        return None, preamble.NO_READING
    if spec.kind != "query" or spec.also_while == "any" or not names.matches(names.TENANT_ID, resource.id):
        return None, preamble.NO_READING
    return resource.id, tenants.reading(resource.id)


def _authorizers_reading() -> Expression:
    try:
        reading = getattr(authorizer(), "reading", None)
    except ComputeError:
        # Told when it is asked to judge: nobody has been identified yet.
        return preamble.NO_READING
    found: Expression = preamble.NO_READING if reading is None else reading()
    return found
