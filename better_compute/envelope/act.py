"""One call as it goes its way: what is known of it so far, and what it answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from better_compute.contract.methods import MethodSpec, Resource
from better_compute.contract.principals import Principal


@dataclass(slots=True)
class Act:
    """What is known of a call so far; a failure is recorded from it."""

    spec: MethodSpec
    request_id: str
    trace_context: str | None = None
    at: datetime | None = None
    principal: Principal | None = None
    resource: Resource | None = None
    tenant_id: str | None = None
    #: The tenant that the first statement read the state of, and what it read.
    read_of: str | None = None
    read: Any = None
    denied: bool = False
    note_use: Callable[[], None] | None = None
    idempotency_key: str | None = None
    dry_run: bool = False
    #: The input is still on its way: nobody waits for it before it is known who calls.
    arriving: bool = False
    #: The handler is done and what is left is to commit.
    committing: bool = False
    #: Told who calls, before anything is done for them; may refuse.
    on_identified: Callable[[Principal], None] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A call's answer as JSON, and as an object of the declared type.

    ``replayed`` tells that the answer is an earlier call's, kept under the same Idempotency-Key; there is then
    no ``result``.
    """

    body: bytes
    result: Any = None
    replayed: bool = False


def new_request_id() -> str:
    """A fresh request id."""
    return uuid.uuid4().hex
