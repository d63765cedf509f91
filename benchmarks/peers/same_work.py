"""The database work of our three methods, statement by statement, for peers that differ in everything else.

A peer parses the request, validates, routes, renders and answers in its framework's own way; what it asks of PostgreSQL
is what our envelope asks: one fused statement for limits, token and user, the tenant's state, the row, the event, the
audit record and the work item, and COMMIT in the same message as the last of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from better_compute import Expression
from better_compute.engine.contexts import served_port
from better_compute.engine.shards import UNSHARDED
from better_compute.envelope import identity, tokens
from better_compute.store import audit, outbox, preamble, queued, transaction
from better_compute.store.work import WorkRow
from example_project.acme_widgets.models import Widget

#: The statement timeout of a call, as our settings have it.
TIMEOUT_MS = 15_000


class Refused(Exception):
    """No such token, or its user may not."""


@dataclass(slots=True)
class Open:
    """A call that has begun."""

    at: datetime
    principal: str
    user: Any
    request_id: str
    read: Any


@contextmanager
def opened(secret: str, kind: Literal["query", "mutation"], tenant_id: str | None) -> Iterator[Open]:
    """One transaction, begun by the statement that finds the token; the tenant's state is read as ours does."""
    tenants = served_port("tenants")
    reads = kind == "query" and tenant_id is not None and tenants is not None
    reading = preamble.NO_READING
    if reads:
        state = tenants.reading(tenant_id)
        # Ours leaves room for what an authorizer wants to have read.
        reading = Expression(f"ARRAY[({state.sql})::text, (NULL)::text]", state.params)
    opening: list[Open] = []

    def first() -> None:
        opening.append(begin(secret, kind, reading))

    with transaction.transaction(first=first, marked=True):
        call = opening[0]
        if tenants is not None and tenant_id is not None:
            tenants.admit(tenant_id, kind=kind, also_while=frozenset(), read=(call.read[0],) if reads else None)
        yield call


def begin(secret: str, kind: Literal["query", "mutation"], reading: Expression) -> Open:
    """Limits, time, token and user in one statement."""
    columns = identity._user_columns("default")
    limits = preamble.Limits(TIMEOUT_MS, read_only=kind == "query", reading=reading)
    found, row = preamble.open_call_with_token("default", limits, tokens.digest(secret), columns)
    if row is None or not row.live:
        raise Refused
    user = identity._user("default", columns, row)
    if not user.is_active:
        raise Refused
    return Open(found.at, f"token/{row.id}", user, uuid.uuid4().hex, found.read)


def permitted(call: Open, permission: str) -> None:
    """Ask Django whether the user may; our authorizer asks the same of the same user."""
    if not call.user.has_perm(permission):
        raise Refused


def count(tenant_id: str) -> int:
    """How many widgets the tenant has."""
    return Widget.objects.filter(tenant_id=tenant_id).count()


def page(kind: str, limit: int) -> Sequence[queued.Queued]:
    """The first queued keys of a reconciler; one more than asked for tells whether there are others."""
    return queued.page(after=("", ""), kind=kind, attempts=0, limit=limit + 1)[:limit]


def poke(call: Open, tenant_id: str, widget_id: str) -> None:
    """The widget, its event, the work item and the audit record."""
    Widget.objects.create(id=widget_id, tenant_id=tenant_id)
    outbox.insert(
        type="acme.widget-poked",
        tenant_id=tenant_id,
        subject=f"widget/{widget_id}",
        data={"widgetId": widget_id},
        request_id=call.request_id,
    )
    transaction.enqueue([WorkRow("acme.widgets", tenant_id, UNSHARDED)])
    audit.insert(
        audit.Record(
            at=call.at,
            tenant_id=tenant_id,
            principal=call.principal,
            method="plugins.acme.widgets.poke",
            action="compute:acme:poke",
            resource_type="tenant",
            resource_id=tenant_id,
            outcome="allowed",
            code=None,
            request_id=call.request_id,
        )
    )
