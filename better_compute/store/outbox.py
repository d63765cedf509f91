"""The outbox (schema/0003_outbox.sql): events that commit with the change they tell of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

import msgspec

from better_compute.store import transaction

#: What an event is inserted with, and all that the role that serves may insert.
COLUMNS: Final = ("type", "tenant_id", "subject", "data", "trace_context", "request_id")

INSERT = f"INSERT INTO compute_outbox ({', '.join(COLUMNS)}) VALUES (%s, %s, %s, %s::jsonb, %s, %s)"  # noqa: S608 - its own columns


def insert(
    *,
    type: str,
    tenant_id: str,
    subject: str,
    data: Mapping[str, Any],
    trace_context: str | None = None,
    request_id: str | None = None,
) -> None:
    """Insert one event at the end of the open transaction. Takes no lock that another writer waits for."""
    transaction.require_open("ctx.events.publish")
    transaction.at_end(INSERT, [type, tenant_id, subject, _json(type, data), trace_context, request_id])


def _json(type: str, data: Mapping[str, Any]) -> str:
    """The data as JSON. Raises ValueError for what PostgreSQL would refuse or msgspec would lose."""
    try:
        text = msgspec.json.encode(data).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"The data of event {type!r} cannot be written as JSON: {error}.") from None
    if "\\u0000" in text and any("\0" in each for each in _leaves(msgspec.json.decode(text)) if isinstance(each, str)):
        raise ValueError(f"The data of event {type!r} holds a NUL character, which PostgreSQL cannot store.")
    # msgspec writes what is no number as null.
    if "null" in text and not all(map(isfinite, _floats(msgspec.to_builtins(data)))):
        raise ValueError(f"The data of event {type!r} holds NaN or an infinity, which JSON has no form for.")
    return text


def _floats(value: Any) -> Iterator[float]:
    return (each for each in _leaves(value) if isinstance(each, float))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value
        value = value.values()
    elif not isinstance(value, list | tuple | set | frozenset):
        yield value
        return
    for each in value:
        yield from _leaves(each)
